#include "base/ranges.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(RangesTest, NeighboursAreJoined) {
  EXPECT_EQ(format_ranges({0, 1, 2, 4, 8, 9}), "0-2,4,8-9");
  EXPECT_EQ(format_ranges({7}), "7");
  EXPECT_EQ(format_ranges({}), "");
}

}  // namespace
}  // namespace drover

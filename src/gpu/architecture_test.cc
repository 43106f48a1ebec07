#include "gpu/architecture.h"

#include <gtest/gtest.h>

namespace drover::gpu {
namespace {

TEST(Architecture, FollowsFromTheComputeCapability) {
  EXPECT_EQ(architecture_of({3, 7}), "Kepler");
  EXPECT_EQ(architecture_of({7, 0}), "Volta");
  EXPECT_EQ(architecture_of({7, 5}), "Turing");
  EXPECT_EQ(architecture_of({8, 6}), "Ampere");
  EXPECT_EQ(architecture_of({8, 9}), "Ada Lovelace");
  EXPECT_EQ(architecture_of({9, 0}), "Hopper");
  EXPECT_EQ(architecture_of({99, 0}), "");
}

}  // namespace
}  // namespace drover::gpu

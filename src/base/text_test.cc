#include "base/text.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(Text, LettersAreThoseOfAscii) {
  EXPECT_EQ(lower("GPU-\xC3\x84@[z"), "gpu-\xC3\x84@[z");
  EXPECT_TRUE(equal_without_case("Localhost", "lOCALHOST"));
  EXPECT_FALSE(equal_without_case("localhost", "localhos"));
  EXPECT_FALSE(equal_without_case("@", "`"));
}

TEST(Text, BlanksAroundItGo) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \n"), "");
  EXPECT_EQ(trimmed(""), "");
}

}  // namespace
}  // namespace drover

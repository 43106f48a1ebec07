#include "base/version.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(Version, IsComparedNumberByNumber) {
  const auto of = [](std::string_view text) { return Version::parse(text).value(); };
  EXPECT_LT(of("9.2"), of("10.0"));
  EXPECT_LT(of("535.54.03"), of("535.104.05"));
  EXPECT_LT(of("535"), of("535.54.03"));
  EXPECT_GT(of("471"), of("470.256.02"));
  EXPECT_EQ(of("12"), of("12.0"));
  EXPECT_EQ(of("525.60.13").major(), 525U);
  EXPECT_EQ(of("525.60.13").minor(), 60U);
  EXPECT_EQ(of("12").minor(), 0U);
}

TEST(Version, IsNothingButNumbersBetweenDots) {
  for (const auto* text :
       {"", ".", "12.", ".12", "12..1", "12.x", "v12", "-1", "12 ", "1234567890", "1.2.3.4.5.6.7.8.9"})
    EXPECT_FALSE(Version::parse(text)) << text;
}

}  // namespace
}  // namespace drover

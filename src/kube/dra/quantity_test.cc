#include "kube/dra/quantity.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace drover::kube::dra {
namespace {

TEST(Quantity, IsReadAsKubernetesWritesIt) {
  EXPECT_EQ(parse_quantity("0"), 0);
  EXPECT_EQ(parse_quantity("500"), 500);
  EXPECT_EQ(parse_quantity("+1k"), 1000);
  EXPECT_EQ(parse_quantity("80Gi"), 80LL << 30);
  EXPECT_EQ(parse_quantity("1.5Gi"), 3LL << 29);
  EXPECT_EQ(parse_quantity("40G"), 40'000'000'000);
  EXPECT_EQ(parse_quantity("2e3"), 2000);
  EXPECT_EQ(parse_quantity("2E"), 2'000'000'000'000'000'000);
  EXPECT_EQ(parse_quantity("9223372036854775807e0").has_value(), false);
  EXPECT_EQ(parse_quantity("7Ei"), 7LL << 60);
}

TEST(Quantity, RoundsFractionsUp) {
  EXPECT_EQ(parse_quantity("500m"), 1);
  EXPECT_EQ(parse_quantity("1500m"), 2);
  EXPECT_EQ(parse_quantity("2000m"), 2);
  EXPECT_EQ(parse_quantity("1n"), 1);
  EXPECT_EQ(parse_quantity("0.0"), 0);
}

TEST(Quantity, RefusesWhatIsNone) {
  for (const char* text : {"", "Gi", "-1", "1 Gi", "1Gib", "1..5", ".", "e5", "1e", "1e99999999999", "8Ei",
                           "1e400", "9999999999999999999", "0x10", "1K"})
    EXPECT_FALSE(parse_quantity(text)) << text;
  EXPECT_FALSE(parse_quantity(std::string("1\0", 2)));
}

TEST(Quantity, IsWrittenInTheShortestForm) {
  EXPECT_EQ(bytes_quantity(0), "0");
  EXPECT_EQ(bytes_quantity(81559ULL << 20), "81559Mi");
  EXPECT_EQ(bytes_quantity(81920ULL << 20), "80Gi");
  EXPECT_EQ(bytes_quantity(1025), "1025");
  EXPECT_EQ(count_quantity(1000), "1k");
  EXPECT_EQ(count_quantity(1500), "1500");
}

RC_GTEST_PROP(QuantityProperty, ReadsWhatItWrites, ()) {
  const auto number = *rc::gen::inRange<std::int64_t>(0, 999'999'999'999'999'999);
  RC_ASSERT(parse_quantity(bytes_quantity(static_cast<std::uint64_t>(number))) == number);
  RC_ASSERT(parse_quantity(count_quantity(static_cast<std::uint64_t>(number))) == number);
}

}  // namespace
}  // namespace drover::kube::dra

#include "kube/scheduler/nanos.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace drover::kube::scheduler {
namespace {

TEST(Nanos, KeepAllDigits) {
  const auto nanos = [](const char* text) { return static_cast<std::int64_t>(parse_nanos(text).value()); };
  EXPECT_EQ(nanos("1500m"), 1'500'000'000);
  EXPECT_EQ(nanos("+1.5"), 1'500'000'000);
  EXPECT_EQ(nanos("333u"), 333'000);
  EXPECT_EQ(nanos("0.1n"), 1);
  EXPECT_EQ(nanos("0"), 0);
  EXPECT_EQ(nanos("2e3"), 2'000'000'000'000);
  EXPECT_TRUE(parse_nanos("1.5Gi").value() == (static_cast<Nanos>(3) << 29U) * 1'000'000'000);
}

TEST(Nanos, EndWhereKubernetesQuantitiesDo) {
  const auto most = static_cast<Nanos>(9223372036854775807LL) * 1'000'000'000;
  for (const auto* text : {"9223372036854775807", "8Ei", "9999999999999999999Ei", "1e400", "1e2147483647"})
    EXPECT_TRUE(parse_nanos(text).value() == most) << text;
  EXPECT_TRUE(parse_nanos("1e-2147483648").value() == 1);
}

TEST(Nanos, RefuseWhatIsNoQuantity) {
  for (const auto* text : {"", "-1", "1 Gi", "x", "e5", "1..5", "1Gib", "12345678901234567890"})
    EXPECT_FALSE(parse_nanos(text)) << text;
}

}  // namespace
}  // namespace drover::kube::scheduler

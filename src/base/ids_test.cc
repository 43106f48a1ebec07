#include "base/ids.h"

#include <gtest/gtest.h>

#include <set>

namespace drover {
namespace {

TEST(Ids, AUuidHasItsVersionAndVariant) {
  EXPECT_EQ(uuid_of(0, 0), "00000000-0000-4000-8000-000000000000");
  EXPECT_EQ(uuid_of(~0ULL, ~0ULL), "ffffffff-ffff-4fff-bfff-ffffffffffff");
  EXPECT_EQ(uuid_of(0x0123456789abcdefULL, 0x0123456789abcdefULL), "01234567-89ab-4def-8123-456789abcdef");
}

TEST(Ids, NamesHaveUuidsOfTheirOwn) {
  EXPECT_EQ(uuid_named("gpu1"), uuid_named("gpu1"));
  EXPECT_NE(uuid_named("gpu1"), uuid_named("gpu2"));
  EXPECT_EQ(uuid_named("gpu1").size(), 36U);
}

TEST(Ids, NumbersSideBySideAreFarApart) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 100'000; ++i) seen.insert(mix(1'700'000'000'000 + i % 10, i / 10) >> 16);
  EXPECT_EQ(seen.size(), 100'000u);
}

}  // namespace
}  // namespace drover

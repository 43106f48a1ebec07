#include "control/resource_amounts.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

namespace drover::control {
namespace {

ResourceAmounts with_ports(const std::set<int>& ports) {
  ResourceAmounts amounts;
  for (const int port : ports) amounts += ResourceAmounts{0, 0, 0, 0, {{port, port}}};
  return amounts;
}

TEST(ResourceAmountsTest, AddsSubtractsAndCovers) {
  const ResourceAmounts all{2, 4000, 64ULL << 20, 0, {{31000, 31010}}};
  const ResourceAmounts part{1, 500, 32ULL << 20, 0, {{31003, 31004}}};
  auto rest = all;
  rest -= part;
  EXPECT_EQ(rest, (ResourceAmounts{1, 3500, 32ULL << 20, 0, {{31000, 31002}, {31005, 31010}}}));
  EXPECT_TRUE(all.covers(part));
  EXPECT_FALSE(part.covers(all));
  EXPECT_FALSE(rest.covers(part)) << "its ports are gone";
  rest += part;
  EXPECT_EQ(rest, all);
  rest -= ResourceAmounts{9, 9000, 1ULL << 40, 5, {}};
  EXPECT_EQ(rest, (ResourceAmounts{0, 0, 0, 0, {{31000, 31010}}}));
  EXPECT_EQ(to_string(part), "gpus:1; cpus:0.5; mem:32; ports:[31003-31004]");
}

TEST(ResourceAmountsTest, PortsAreASet) {
  EXPECT_TRUE(rc::check([] {
    const auto some = rc::gen::container<std::set<int>>(rc::gen::inRange(1, 30));
    const auto a = *some;
    const auto b = *some;
    std::set<int> both = a;
    both.insert(b.begin(), b.end());
    std::set<int> only = a;
    for (const int port : b) only.erase(port);
    auto sum = with_ports(a);
    sum += with_ports(b);
    auto rest = with_ports(a);
    rest -= with_ports(b);
    RC_ASSERT(sum == with_ports(both));
    RC_ASSERT(rest == with_ports(only));
    RC_ASSERT(sum.covers(with_ports(a)));
    RC_ASSERT(rest.covers(with_ports(a)) == (only == a));
  }));
}

TEST(ResourceAmountsTest, CrumbsAreNotOffered) {
  EXPECT_FALSE((ResourceAmounts{1, 9, 1ULL << 20, 1ULL << 40, {{1, 9}}}).worth_offering());
  EXPECT_TRUE((ResourceAmounts{0, 10, 0, 0, {}}).worth_offering());
}

}  // namespace
}  // namespace drover::control

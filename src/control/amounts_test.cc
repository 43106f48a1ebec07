#include "control/amounts.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

namespace drover::control {
namespace {

Amounts with_ports(const std::set<int>& ports) {
  Amounts amounts;
  for (const int port : ports) amounts += Amounts{0, 0, 0, 0, {{port, port}}};
  return amounts;
}

TEST(AmountsTest, AddsSubtractsAndCovers) {
  const Amounts all{2, 4000, 64ULL << 20, 0, {{31000, 31010}}};
  const Amounts part{1, 500, 32ULL << 20, 0, {{31003, 31004}}};
  auto rest = all;
  rest -= part;
  EXPECT_EQ(rest, (Amounts{1, 3500, 32ULL << 20, 0, {{31000, 31002}, {31005, 31010}}}));
  EXPECT_TRUE(all.covers(part));
  EXPECT_FALSE(part.covers(all));
  EXPECT_FALSE(rest.covers(part)) << "its ports are gone";
  rest += part;
  EXPECT_EQ(rest, all);
  rest -= Amounts{9, 9000, 1ULL << 40, 5, {}};
  EXPECT_EQ(rest, (Amounts{0, 0, 0, 0, {{31000, 31010}}}));
  EXPECT_EQ(to_string(part), "gpus:1; cpus:0.5; mem:32; ports:[31003-31004]");
}

TEST(AmountsTest, PortsAreASet) {
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

TEST(AmountsTest, CrumbsAreNotOffered) {
  EXPECT_FALSE((Amounts{1, 9, 1ULL << 20, 1ULL << 40, {{1, 9}}}).worth_offering());
  EXPECT_TRUE((Amounts{0, 10, 0, 0, {}}).worth_offering());
}

}  // namespace
}  // namespace drover::control

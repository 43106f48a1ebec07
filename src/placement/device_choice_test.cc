#include "placement/device_choice.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <random>
#include <set>
#include <tuple>

#include "placement/bounded_choice.h"

namespace drover::placement {
namespace {

using gpu::Link;
using gpu::PcieLevel;
using Links = std::vector<std::vector<Link>>;
using NumaNodes = std::vector<std::optional<int>>;

Links links_of(const std::vector<std::vector<int>>& nvlinks) {
  Links links;
  for (const auto& row : nvlinks) {
    auto& made = links.emplace_back();
    for (const int count : row) made.push_back({count, PcieLevel::kUnknown});
  }
  return links;
}

DeviceMask all_of(int devices) {
  return devices == kMaxDevices ? ~DeviceMask{0} : (DeviceMask{1} << devices) - 1;
}

DeviceCriteria any(int count, DeviceMask free) {
  DeviceCriteria criteria;
  criteria.claims = {{count, free}};
  criteria.free = free;
  return criteria;
}

DeviceMask mask(std::initializer_list<int> devices) {
  DeviceMask set = 0;
  for (const int device : devices) set |= DeviceMask{1} << device;
  return set;
}

// NVIDIA DGX-1 with V100: a hybrid cube mesh; four devices a socket.
const Links kDgx1 = links_of({{0, 1, 1, 2, 2, 0, 0, 0},
                              {1, 0, 2, 1, 0, 2, 0, 0},
                              {1, 2, 0, 2, 0, 0, 1, 0},
                              {2, 1, 2, 0, 0, 0, 0, 1},
                              {2, 0, 0, 0, 0, 1, 1, 2},
                              {0, 2, 0, 0, 1, 0, 2, 1},
                              {0, 0, 1, 0, 1, 2, 0, 2},
                              {0, 0, 0, 1, 2, 1, 2, 0}});
const NumaNodes kTwoSockets = {0, 0, 0, 0, 1, 1, 1, 1};

TEST(DeviceChoiceTest, TakesTheMostNvLinksAndKeepsTheRestStrong) {
  const Wiring wiring(kDgx1, kTwoSockets);
  EXPECT_EQ(choose(wiring, any(4, all_of(8))), mask({0, 1, 2, 3}));
  EXPECT_EQ(choose(wiring, any(2, mask({0, 1, 4, 5, 6}))), mask({0, 4}));
  EXPECT_EQ(choose(wiring, any(8, all_of(8))), all_of(8));
  EXPECT_EQ(choose(wiring, any(5, mask({0, 1, 2, 3}))), std::nullopt);
}

TEST(DeviceChoiceTest, OneDeviceDoesNotBreakAPairThatTheNextRequestCouldUse) {
  const Wiring wiring(links_of({{0, 2, 0}, {2, 0, 0}, {0, 0, 0}}), {0, 0, 0});
  EXPECT_EQ(choose(wiring, any(1, all_of(3))), mask({2}));
}

TEST(DeviceChoiceTest, WeakestPairDecidesBetweenEqualSums) {
  // 0-1-2: 3 + 3 + 0; 3-4-5: 2 + 2 + 2.
  std::vector<std::vector<int>> nvlinks(6, std::vector<int>(6, 0));
  const auto join = [&](std::size_t a, std::size_t b, int count) { nvlinks[a][b] = nvlinks[b][a] = count; };
  join(0, 1, 3), join(1, 2, 3), join(3, 4, 2), join(3, 5, 2), join(4, 5, 2);
  EXPECT_EQ(choose(Wiring(links_of(nvlinks), {0, 0, 0, 0, 0, 0}), any(3, all_of(6))), mask({3, 4, 5}));
}

TEST(DeviceChoiceTest, NearnessOverPcieDecidesWithoutNvLinks) {
  auto links = Links(3, std::vector<Link>(3, {0, PcieLevel::kAcross}));
  links[0][2].pcie = links[2][0].pcie = PcieLevel::kSwitch;
  EXPECT_EQ(choose(Wiring(links, {0, 1, 0}), any(2, all_of(3))), mask({0, 2}));
}

TEST(DeviceChoiceTest, StaysOnOneNumaNodeWhenNothingElseDecides) {
  const Wiring wiring(links_of(std::vector<std::vector<int>>(4, std::vector<int>(4, 6))), {0, 1, 0, 1});
  EXPECT_EQ(choose(wiring, any(2, all_of(4))), mask({0, 2}));
}

TEST(DeviceChoiceTest, PreferredLocalityBreaksTiesAndRequiredLocalityBinds) {
  const Wiring wiring(links_of(std::vector<std::vector<int>>(4, std::vector<int>(4, 6))), {0, 0, 1, 1});
  auto criteria = any(2, all_of(4));
  criteria.preferred = mask({3});
  EXPECT_EQ(choose(wiring, criteria), mask({2, 3}));
  criteria.cpu_affinity = Preference::kPrefer;
  criteria.cpus_suffice.set(0b01);
  EXPECT_EQ(choose(wiring, criteria), mask({0, 1}));
  criteria.cpu_affinity = Preference::kRequire;
  criteria.free = mask({1, 2, 3});
  EXPECT_EQ(choose(wiring, criteria), std::nullopt);
}

TEST(DeviceChoiceTest, PreferredLocalityNeverCostsALink) {
  const Wiring wiring(links_of({{0, 1, 0, 0}, {1, 0, 0, 0}, {0, 0, 0, 2}, {0, 0, 2, 0}}), {0, 0, 1, 1});
  auto criteria = any(2, all_of(4));
  criteria.preferred = mask({0, 1});
  criteria.cpu_affinity = Preference::kPrefer;
  criteria.cpus_suffice.set(0b01);
  EXPECT_EQ(choose(wiring, criteria), mask({2, 3}));
}

TEST(DeviceChoiceTest, MinimumBindsEveryPair) {
  const Wiring wiring(kDgx1, kTwoSockets);
  auto criteria = any(3, all_of(8));
  criteria.minimum.min_nvlinks = 1;
  EXPECT_EQ(choose(wiring, criteria), mask({0, 2, 3}));
  criteria.minimum.min_nvlinks = 2;
  EXPECT_EQ(choose(wiring, criteria), std::nullopt);
}

TEST(DeviceChoiceTest, AnyNvLinkIsNearerThanPcie) {
  EXPECT_TRUE(near_enough({0, PcieLevel::kUnknown}, {}));
  EXPECT_TRUE(near_enough({1, PcieLevel::kAcross}, {0, PcieLevel::kSwitch}));
  EXPECT_TRUE(near_enough({0, PcieLevel::kSameBoard}, {2, PcieLevel::kSwitch}));
  EXPECT_FALSE(near_enough({1, PcieLevel::kSwitches}, {2, PcieLevel::kSwitch}));
  EXPECT_FALSE(near_enough({1, PcieLevel::kSameBoard}, {2, PcieLevel::kUnknown}));
  EXPECT_FALSE(near_enough({0, PcieLevel::kUnknown}, {0, PcieLevel::kAcross}));
}

TEST(DeviceChoiceTest, EachDeviceServesOneClaim) {
  const Wiring wiring(kDgx1, kTwoSockets);
  DeviceCriteria criteria;
  criteria.free = all_of(8);
  criteria.claims = {{1, mask({0, 1})}, {1, mask({0})}, {1, mask({6, 7})}};
  EXPECT_EQ(choose(wiring, criteria), mask({0, 1, 6}));
  criteria.claims = {{2, mask({0, 1})}, {1, mask({0})}};
  EXPECT_EQ(choose(wiring, criteria), std::nullopt);
}

TEST(DeviceChoiceTest, TakesAtMostOneOfAnExclusiveSet) {
  const Wiring wiring(kDgx1, kTwoSockets);
  auto criteria = any(2, all_of(8));
  criteria.exclusive = {all_of(4), all_of(8) & ~all_of(4)};
  EXPECT_EQ(choose(wiring, criteria), mask({0, 4}));
  criteria.claims.front().count = 3;
  EXPECT_EQ(choose(wiring, criteria), std::nullopt);
}

// ---- against the definition ----

struct Machine {
  Links links;
  NumaNodes numa;
};

/// Larger is better, in the order of device_choice.h; the last fields are negative or reversed.
using Rank = std::tuple<long, int, long, bool, int, long, long, int>;

struct PairSums {
  long nvlinks = 0;
  long nearness = 0;
  int weakest = 1 << 20;
};

PairSums sums_of(const Machine& machine, DeviceMask set) {
  PairSums sums;
  for (std::size_t a = 0; a < machine.links.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      if ((set >> a & set >> b & 1U) == 0) continue;
      const auto& link = machine.links[a][b];
      sums.nvlinks += link.nvlinks;
      sums.weakest = std::min(sums.weakest, link.nvlinks);
      if (link.pcie != PcieLevel::kUnknown) sums.nearness += 7 - static_cast<int>(link.pcie);
    }
  return sums;
}

bool can_serve(const std::vector<ClaimMask>& claims, std::size_t claim, int served, DeviceMask set) {
  if (claim == claims.size()) return set == 0;
  if (served == claims[claim].count) return can_serve(claims, claim + 1, 0, set);
  for (DeviceMask rest = set & claims[claim].allowed; rest != 0; rest &= rest - 1)
    if (can_serve(claims, claim, served + 1, set & ~(rest & -rest))) return true;
  return false;
}

bool allowed(const Machine& machine, const DeviceCriteria& criteria, DeviceMask set) {
  int wanted = 0;
  for (const auto& claim : criteria.claims) wanted += claim.count;
  if (std::popcount(set) != wanted) return false;
  if ((set & ~criteria.free) != 0 || !can_serve(criteria.claims, 0, 0, set)) return false;
  for (const auto exclusive : criteria.exclusive)
    if (std::popcount(set & exclusive) > 1) return false;
  for (std::size_t a = 0; a < machine.links.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if ((set >> a & set >> b & 1U) != 0 && !near_enough(machine.links[a][b], criteria.minimum))
        return false;
  return true;
}

std::optional<DeviceMask> by_definition(const Machine& machine, const DeviceCriteria& criteria) {
  std::optional<DeviceMask> best;
  Rank best_rank;
  const auto first_differs_in = [](DeviceMask a, DeviceMask b) { return (a ^ b) & -(a ^ b); };
  for (DeviceMask set = 0; set < DeviceMask{1} << machine.links.size(); ++set) {
    if (!allowed(machine, criteria, set)) continue;
    const auto sums = sums_of(machine, set);
    const auto left = sums_of(machine, criteria.free & ~set);
    std::set<int> nodes;
    for (std::size_t i = 0; i < machine.numa.size(); ++i)
      if ((set >> i & 1U) != 0 && machine.numa[i]) nodes.insert(*machine.numa[i]);
    std::set<int> known;
    for (const auto& node : machine.numa)
      if (node) known.insert(*node);
    std::size_t numa = 0;
    for (const int node : nodes) numa |= 1U << std::distance(known.begin(), known.find(node));
    const bool near = criteria.cpu_affinity != Preference::kNone && set != 0 && criteria.cpus_suffice[numa];
    if (criteria.cpu_affinity == Preference::kRequire && set != 0 && !near) continue;
    const Rank rank{sums.nvlinks,
                    sums.weakest,
                    sums.nearness,
                    near,
                    std::popcount(set & criteria.preferred),
                    left.nvlinks,
                    left.nearness,
                    -static_cast<int>(nodes.size())};
    if (!best || rank > best_rank || (rank == best_rank && (set & first_differs_in(set, *best)) != 0)) {
      best = set;
      best_rank = rank;
    }
  }
  return best;
}

int any_int(int first, int last) {  // not only small ones at first, as RapidCheck would
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(first, last + 1));
}

DeviceMask any_mask(int devices) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<DeviceMask>(0, all_of(devices) + 1));
}

Machine any_machine(int devices) {
  // Few values, so that much ties; sometimes one value, as behind switches.
  const auto most = *rc::gen::element(0, 1, 2, 6);
  const auto least = *rc::gen::element(0, most);
  const auto unknown = static_cast<int>(PcieLevel::kUnknown);
  const auto nearest = *rc::gen::element(static_cast<int>(PcieLevel::kSwitch), unknown - 1, unknown);
  const auto nodes = any_int(1, 3);
  const auto size = static_cast<std::size_t>(devices);
  Machine machine{Links(size, std::vector<Link>(size, {0, PcieLevel::kSameDevice})), {}};
  for (std::size_t a = 0; a < size; ++a) {
    const auto node = any_int(-1, nodes - 1);
    machine.numa.push_back(node < 0 ? std::nullopt : std::optional(node * 3));
    for (std::size_t b = 0; b < a; ++b)
      machine.links[a][b] =
          machine.links[b][a] = {any_int(least, most), static_cast<PcieLevel>(any_int(nearest, unknown))};
  }
  return machine;
}

/// Sometimes every device has some that could take its place.
Machine with_twins(Machine machine) {
  for (std::size_t a = 0; a < machine.links.size(); ++a) {
    machine.numa[a] = machine.numa[a % 3];
    for (std::size_t b = 0; b < a; ++b)
      machine.links[a][b] = machine.links[b][a] = machine.links[a % 3][b % 3 == a % 3 ? a % 3 : b % 3];
  }
  return machine;
}

DeviceCriteria any_criteria(int devices) {
  DeviceCriteria criteria;
  criteria.free = any_mask(devices) | any_mask(devices);
  for (int claims = any_int(1, 3); claims > 0; --claims)
    criteria.claims.push_back({any_int(1, 3), any_mask(devices) | any_mask(devices)});
  for (int sets = *rc::gen::element(0, 0, 1, 2); sets > 0; --sets)
    criteria.exclusive.push_back(any_mask(devices) & any_mask(devices));
  criteria.minimum.min_nvlinks = *rc::gen::element(0, 0, 1, 2);
  criteria.minimum.max_pcie =
      *rc::gen::element(PcieLevel::kUnknown, PcieLevel::kUnknown, PcieLevel::kSameNuma);
  criteria.cpu_affinity = *rc::gen::element(Preference::kNone, Preference::kPrefer, Preference::kRequire);
  for (std::size_t numa = 0; numa < 8; ++numa) criteria.cpus_suffice[numa] = *rc::gen::arbitrary<bool>();
  criteria.preferred = any_mask(devices);
  return criteria;
}

/// By the tables, and by the search that stands in for them on larger machines.
void check(const Machine& machine, const DeviceCriteria& criteria) {
  const Wiring wiring(machine.links, machine.numa);
  const auto best = by_definition(machine, criteria);
  RC_ASSERT(choose(wiring, criteria) == best);
  const DeviceConditions conditions(wiring.tables(), criteria);
  if (conditions.count > 0 && conditions.possible())
    RC_ASSERT(choose_by_search(wiring.tables(), criteria, conditions) == best);
}

RC_GTEST_PROP(DeviceChoiceProperty, IsTheBestSetOfAnyFreeDevices, ()) {
  const auto devices = any_int(0, 9);
  const auto machine = any_machine(devices);
  for (int count = 0; count <= devices + 1; ++count) check(machine, any(count, any_mask(devices)));
}

RC_GTEST_PROP(DeviceChoiceProperty, IsTheBestSetUnderAllCriteria, ()) {
  const auto devices = any_int(4, 8);
  const auto machine = any_machine(devices);
  for (int i = 0; i < 10; ++i) check(machine, any_criteria(devices));
}

RC_GTEST_PROP(DeviceChoiceProperty, IsTheBestSetWhereDevicesAreAlike, ()) {
  const auto devices = any_int(8, 11);
  const auto machine = with_twins(any_machine(devices));
  for (int count = 1; count <= devices; ++count) check(machine, any(count, any_mask(devices)));
  for (int i = 0; i < 3; ++i) check(machine, any_criteria(devices));
}

/// Every pair has one NVLink or none, so that much ties.
Machine any_graph(int devices, int percent) {
  auto machine = any_machine(devices);
  for (std::size_t a = 0; a < machine.links.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      machine.links[a][b] = machine.links[b][a] = {any_int(1, 100) <= percent ? 1 : 0, PcieLevel::kUnknown};
  return machine;
}

RC_GTEST_PROP(DeviceChoiceProperty, IsTheBestSetOfAnyGraph, ()) {
  for (int round = 0; round < 10; ++round) {
    auto machine = any_graph(7, any_int(20, 80));
    std::ranges::fill(machine.numa, std::nullopt);
    for (int count = 2; count <= 5; ++count) check(machine, any(count, all_of(7)));
  }
}

/// Where few pairs are near enough, sets are searched for and not looked up.
RC_GTEST_PROP(DeviceChoiceProperty, IsTheBestSetWhereFewPairsAreNearEnough, ()) {
  const auto machine = any_graph(13, any_int(40, 60));
  auto criteria = any_criteria(13);
  criteria.free = all_of(13);
  criteria.minimum = {1, PcieLevel::kUnknown};
  for (int count = 3; count <= 5; ++count) {
    criteria.claims = {{count - 1, criteria.free}, {1, any_mask(13)}};
    check(machine, criteria);
  }
}

// ---- more devices than tables can hold ----

Machine random_machine(int devices, int most, unsigned seed) {
  std::minstd_rand random(seed);
  const auto size = static_cast<std::size_t>(devices);
  Machine machine{Links(size, std::vector<Link>(size, {0, PcieLevel::kSameDevice})), {}};
  for (std::size_t a = 0; a < size; ++a) {
    machine.numa.emplace_back(a / 8);
    for (std::size_t b = 0; b < a; ++b)
      machine.links[a][b] =
          machine.links[b][a] = {static_cast<int>(random()) % (most + 1),
                                 a / 8 == b / 8 ? PcieLevel::kSameNuma : PcieLevel::kAcross};
  }
  return machine;
}

/// Devices that are not free do not matter: the machine without them decides alike.
TEST(DeviceChoiceTest, IsTheBestSetOnAMachineOfManyDevices) {
  for (const int devices : {17, 33, 64})
    for (const int most : {0, 1, 5}) {
      const auto machine = random_machine(devices, most, static_cast<unsigned>(devices + most));
      const Wiring wiring(machine.links, machine.numa);
      std::minstd_rand random(1);
      for (int round = 0; round < 20; ++round) {
        std::vector<std::size_t> kept;
        for (std::size_t i = 0; i < machine.links.size(); ++i)
          if (random() % machine.links.size() < 9) kept.push_back(i);
        Machine part;
        DeviceMask free = 0;
        for (const auto a : kept) {
          free |= DeviceMask{1} << a;
          part.numa.push_back(machine.numa[a]);
          auto& row = part.links.emplace_back();
          for (const auto b : kept) row.push_back(machine.links[a][b]);
        }
        if (kept.size() > 12) continue;
        for (int count = 1; count <= static_cast<int>(kept.size()); ++count) {
          const auto small = by_definition(part, any(count, all_of(static_cast<int>(kept.size()))));
          DeviceMask expected = 0;
          for (std::size_t i = 0; i < kept.size(); ++i)
            if ((*small >> i & 1U) != 0) expected |= DeviceMask{1} << kept[i];
          EXPECT_EQ(choose(wiring, any(count, free)), expected);
        }
      }
    }
}

TEST(DeviceChoiceTest, SwitchesOfSixtyFourDevicesAreNoTrouble) {
  const auto size = std::size_t{64};
  NumaNodes numa;
  for (std::size_t i = 0; i < size; ++i) numa.emplace_back(i % 2);
  const Wiring wiring(Links(size, std::vector<Link>(size, {18, PcieLevel::kUnknown})), numa);
  DeviceMask even = 0;
  for (int i = 0; i < 64; i += 2) even |= DeviceMask{1} << i;
  EXPECT_EQ(choose(wiring, any(32, all_of(64))), even);
  EXPECT_EQ(choose(wiring, any(64, all_of(64))), all_of(64));
}

/// What a search that is given up found is still a set as it was asked for.
TEST(DeviceChoiceTest, AnswersEvenWhereTheBestCannotBeProved) {
  const auto machine = random_machine(64, 3, 7);
  const Wiring wiring(machine.links, machine.numa);
  auto criteria = any(24, all_of(64));
  criteria.exclusive = {mask({0, 1, 2, 3})};
  const auto chosen = choose(wiring, criteria);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(std::popcount(*chosen), 24);
  EXPECT_LE(std::popcount(*chosen & mask({0, 1, 2, 3})), 1);
  EXPECT_GT(sums_of(machine, *chosen).nvlinks, sums_of(machine, all_of(24)).nvlinks);
}

}  // namespace
}  // namespace drover::placement

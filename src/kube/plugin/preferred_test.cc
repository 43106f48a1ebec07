#include "kube/plugin/preferred.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "kube/testing/machines.h"

namespace drover::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::machine;
using ::testing::UnorderedElementsAre;
using testing::uuid;

std::vector<std::string> uuids(const std::vector<int>& indices) {
  std::vector<std::string> names;
  for (const int i : indices) names.push_back(uuid(i));
  return names;
}

TEST(PreferredAllocation, TakesThePairThatIsJoined) {
  const PreferredAllocation preferred(machine(8));
  EXPECT_THAT(preferred.of_gpus(uuids({1, 3, 4, 6, 7}), {}, 2), UnorderedElementsAre(uuid(6), uuid(7)));
  EXPECT_THAT(preferred.of_gpus(uuids({1, 2, 3, 4, 5}), uuids({4}), 2), ElementsAre(uuid(4), uuid(5)));
}

TEST(PreferredAllocation, BeginsAtTheEndWhereClaimsDoNot) {
  const PreferredAllocation preferred(machine(8));
  const auto all = uuids({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(preferred.of_gpus(all, {}, 1), ElementsAre(uuid(7)));
  EXPECT_THAT(preferred.of_gpus(all, {}, 2), UnorderedElementsAre(uuid(6), uuid(7)));
}

TEST(PreferredAllocation, DoesNotFailForGpusThatNobodyKnows) {
  const PreferredAllocation preferred(machine(4));
  const std::vector<std::string> some = {"GPU-lost", uuid(0), uuid(1)};
  EXPECT_THAT(preferred.of_gpus(some, {}, 2), UnorderedElementsAre(uuid(0), uuid(1)));
  EXPECT_THAT(preferred.of_gpus(some, {}, 3), UnorderedElementsAre(uuid(0), uuid(1), "GPU-lost"));
  EXPECT_THAT(preferred.of_gpus(some, {"GPU-lost"}, 2), ElementsAre("GPU-lost", uuid(1)));
  EXPECT_THAT(preferred.of_gpus(some, {}, 9), UnorderedElementsAre(uuid(0), uuid(1), "GPU-lost"));
  EXPECT_THAT(preferred.of_gpus({}, {}, 2), IsEmpty());
  EXPECT_THAT(preferred.of_gpus(some, {}, -1), IsEmpty());
  EXPECT_THAT(PreferredAllocation({}).of_gpus(some, {}, 1), ElementsAre("GPU-lost"));
}

TEST(PreferredAllocation, ServesMachinesWithMoreGpusThanPlacementKnows) {
  std::vector<std::string> all;
  for (int i = 0; i < 70; ++i) all.push_back(uuid(i));
  EXPECT_EQ(PreferredAllocation(machine(70)).of_gpus(all, {}, 70).size(), 70U);
}

int nvlinks_of(const gpu::Inventory& inventory, const std::vector<std::string>& ids) {
  int sum = 0;
  for (const auto& a : inventory.devices)
    for (const auto& b : inventory.devices)
      if (a.index < b.index && std::ranges::count(ids, a.uuid) > 0 && std::ranges::count(ids, b.uuid) > 0)
        sum += inventory.links[static_cast<std::size_t>(a.index)][static_cast<std::size_t>(b.index)].nvlinks;
  return sum;
}

/// The most NVLinks of any set of that size that has the GPUs of `must`.
int best_of(const gpu::Inventory& inventory, const std::vector<int>& free, const std::set<int>& must,
            int size) {
  int best = -1;
  for (unsigned set = 0; set < 1U << free.size(); ++set) {
    if (std::popcount(set) != size) continue;
    std::vector<int> chosen;
    for (std::size_t i = 0; i < free.size(); ++i)
      if ((set >> i & 1U) != 0) chosen.push_back(free[i]);
    if (std::ranges::includes(chosen, must)) best = std::max(best, nvlinks_of(inventory, uuids(chosen)));
  }
  return best;
}

RC_GTEST_PROP(PreferredAllocationProperty, IsTheBestOfAllSets, ()) {
  std::mt19937 random(*rc::gen::arbitrary<unsigned>());
  const auto inventory = testing::random_machine(*rc::gen::inRange(1, 9), random);
  std::vector<int> free;
  for (const auto& device : inventory.devices)
    if (random() % 4 != 0) free.push_back(device.index);
  RC_PRE(!free.empty());
  const int size = *rc::gen::inRange(1, static_cast<int>(free.size()) + 1);
  std::set<int> must;
  for (const int i : free)
    if (random() % 4 == 0 && static_cast<int>(must.size()) < size) must.insert(i);
  const auto chosen =
      PreferredAllocation(inventory).of_gpus(uuids(free), uuids({must.begin(), must.end()}), size);
  RC_ASSERT(static_cast<int>(chosen.size()) == size);
  RC_ASSERT(std::set(chosen.begin(), chosen.end()).size() == chosen.size());
  for (const int i : must) RC_ASSERT(std::ranges::count(chosen, uuid(i)) == 1);
  RC_ASSERT(nvlinks_of(inventory, chosen) == best_of(inventory, free, must, size));
}

TEST(PreferredAllocation, SpreadsReplicasOrPacksThem) {
  const std::vector<std::string> free = {"a::0", "a::1", "a::2", "b::1", "b::2"};
  EXPECT_THAT(PreferredAllocation::of_replicas(free, {}, 2, SharedPolicy::kDistributed),
              ElementsAre("a::0", "a::1"));
  EXPECT_THAT(PreferredAllocation::of_replicas(free, {"a::0"}, 2, SharedPolicy::kDistributed),
              ElementsAre("a::0", "a::1"));
  EXPECT_THAT(PreferredAllocation::of_replicas(free, {}, 2, SharedPolicy::kPacked),
              ElementsAre("b::1", "b::2"));
  EXPECT_EQ(PreferredAllocation::of_replicas(free, {"b::1"}, 9, SharedPolicy::kPacked).size(), 5U);
}

}  // namespace
}  // namespace drover::kube

#include "placement/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "placement/cluster.h"
#include "placement/testing/clusters.h"
#include "placement/testing/parts.h"

namespace drover::placement {
namespace {

using testing::a100_parts;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::instance_of;
using ::testing::IsEmpty;
using testing::part_request;
using testing::with_mig;

constexpr const char* kOne = "1g.5gb";
constexpr const char* kTwo = "2g.10gb";
constexpr const char* kThree = "3g.20gb";
constexpr const char* kFour = "4g.20gb";

std::vector<ChosenPart> chosen(const std::vector<CutGpu>& gpus, const std::string& profile, int count = 1) {
  return choose_parts(gpus, profile, count).value_or(std::vector<ChosenPart>{});
}

TEST(Parts, AreChosenSoThatTheLargestStayPossible) {
  const auto facts = a100_parts();
  CutGpu gpu{&facts, {}};
  // Where the only 4g.20gb could be, nothing else goes.
  EXPECT_THAT(chosen({gpu}, kThree), ElementsAre(ChosenPart{0, instance_of(kThree, 4)}));
  EXPECT_THAT(chosen({gpu}, kTwo), ElementsAre(ChosenPart{0, instance_of(kTwo, 4)}));
  EXPECT_THAT(chosen({gpu}, kOne), ElementsAre(ChosenPart{0, instance_of(kOne, 6)}));
  gpu.taken = {instance_of(kThree, 4)};
  EXPECT_THAT(chosen({gpu}, kFour), ElementsAre(ChosenPart{0, instance_of(kFour, 0)}));
  EXPECT_THAT(chosen({gpu}, "7g.40gb"), IsEmpty());
}

TEST(Parts, FillAGpuThatIsCutBeforeAnotherOne) {
  const auto facts = a100_parts();
  const CutGpu empty{&facts, {}};
  const CutGpu cut{&facts, {instance_of(kThree, 4)}};
  EXPECT_THAT(chosen({empty, cut}, kTwo), ElementsAre(ChosenPart{1, instance_of(kTwo, 0)}));
  EXPECT_EQ(chosen({empty, cut}, kOne, 4).front().gpu, 1U);
}

TEST(Parts, OfOneRequestMayLieOnSeveralGpus) {
  const auto facts = a100_parts();
  const std::vector<CutGpu> two{{&facts, {}}, {&facts, {}}};
  EXPECT_EQ(chosen(two, kOne, 14).size(), 14U);
  EXPECT_EQ(choose_parts(two, kOne, 15), std::nullopt);
  EXPECT_EQ(choose_parts(two, "1g.10gb", 1), std::nullopt) << "no such profile here";
  EXPECT_THAT(chosen(two, "7g.40gb", 2), ElementsAre(ChosenPart{0, instance_of("7g.40gb", 0)},
                                                     ChosenPart{1, instance_of("7g.40gb", 0)}));
}

TEST(Parts, NoMoreOfAProfileThanThereCanBe) {
  const auto facts = a100_parts();
  const CutGpu gpu{&facts, {instance_of("1g.5gb.me", 0)}};
  EXPECT_THAT(chosen({gpu}, "1g.5gb.me"), IsEmpty()) << "one has the engines for media";
  EXPECT_EQ(chosen({gpu}, kOne, 6).size(), 6U);
}

/// Every set of places for so many instances of a profile.
class EveryCut {
 public:
  EveryCut(const std::vector<CutGpu>& gpus, const std::string& profile, int count) : gpus_(gpus) {
    std::vector<ChosenPart> all;
    for (std::size_t i = 0; i < gpus.size(); ++i)
      if (const auto* found = gpus[i].facts->profile(profile))
        for (const auto& place : found->placements) all.push_back({i, {found->id, place}});
    std::ranges::sort(all);
    grow(all, 0, count);
  }
  bool possible() const { return possible_; }
  const std::vector<int>& most_room() const { return most_; }

  /// By profile, the largest first: the most of it that could be added, found by trying.
  static std::vector<int> room(const std::vector<CutGpu>& gpus) {
    std::vector<int> rooms;
    for (const auto* name : {"7g.40gb", kFour, kThree, kTwo, kOne, "1g.5gb.me"}) {
      int sum = 0;
      for (const auto& gpu : gpus) sum += most(gpu, *gpu.facts->profile(name), 0);
      rooms.push_back(sum);
    }
    return rooms;
  }

 private:
  static int most(CutGpu gpu, const gpu::MigProfile& profile, std::size_t from) {
    int best = 0;
    for (auto i = from; i < profile.placements.size(); ++i) {
      const Instance one{profile.id, profile.placements[i]};
      if (!fits(gpu, one)) continue;
      gpu.taken.push_back(one);
      best = std::max(best, 1 + most(gpu, profile, i + 1));
      gpu.taken.pop_back();
    }
    return best;
  }
  void grow(const std::vector<ChosenPart>& all, std::size_t from, int count) {
    if (count == 0) {
      possible_ = true;
      most_ = std::max(most_, room(gpus_));
      return;
    }
    for (auto i = from; i < all.size(); ++i) {
      auto& gpu = gpus_[all[i].gpu];
      if (!fits(gpu, all[i].instance)) continue;
      gpu.taken.push_back(all[i].instance);
      grow(all, i + 1, count - 1);
      gpu.taken.pop_back();
    }
  }

  std::vector<CutGpu> gpus_;
  bool possible_ = false;
  std::vector<int> most_;
};

RC_GTEST_PROP(Parts, AreWhatTryingEveryWayWouldGive, ()) {
  const auto facts = a100_parts();
  std::vector<CutGpu> gpus(*rc::gen::inRange<std::size_t>(1, 3), CutGpu{&facts, {}});
  for (auto& gpu : gpus)
    for (auto tries = *rc::gen::inRange(0, 5); tries > 0; --tries) {
      const auto& profile = *rc::gen::elementOf(facts.profiles);
      const Instance one{profile.id, *rc::gen::elementOf(profile.placements)};
      if (fits(gpu, one)) gpu.taken.push_back(one);
    }
  const auto& profile = *rc::gen::elementOf(facts.profiles);
  const auto count = *rc::gen::inRange(1, 4);
  const EveryCut every(gpus, profile.name, count);
  const auto choice = choose_parts(gpus, profile.name, count);
  RC_ASSERT(choice.has_value() == every.possible());
  if (!choice) return;
  RC_ASSERT(choice->size() == static_cast<std::size_t>(count));
  RC_ASSERT(std::ranges::is_sorted(*choice));
  for (const auto& part : *choice) {
    RC_ASSERT(fits(gpus[part.gpu], part.instance));
    gpus[part.gpu].taken.push_back(part.instance);
  }
  RC_ASSERT(EveryCut::room(gpus) == every.most_room());
}

class PartsOfANode : public ::testing::Test {
 protected:
  void SetUp() override { cluster.set_node(with_mig(testing::node("n", {.count = 3}), {1, 2})); }
  std::string why_not(const Request& request) {
    const auto answer = cluster.place(request);
    return describe(std::get<Reasons>(answer)).front();
  }
  Decision put(const std::string& id, const Request& request) {
    const auto decision = cluster.try_place(request);
    EXPECT_TRUE(decision.has_value()) << id;
    EXPECT_TRUE(cluster.allocate(id, request, *decision)) << id;
    return decision.value_or(Decision{});
  }

  Cluster cluster;
};

TEST_F(PartsOfANode, AreGivenSideBySideAndComeFree) {
  const auto first = put("a", part_request(kThree));
  ASSERT_TRUE(first.gpus.front().mig);
  EXPECT_EQ(first.gpus.front().uuid, "n-1");
  EXPECT_EQ(first.gpus.front().mig->placement, (gpu::MigPlacement{4, 4}));
  EXPECT_EQ(first.gpus.front().memory_bytes, 20ULL << 30);
  EXPECT_EQ(tier_of(first.gpus.front(), ""), gpu::kHard);
  EXPECT_EQ(put("b", part_request(kFour)).gpus.front().uuid, "n-1");
  EXPECT_FALSE(cluster.allocate("c", part_request(kThree), first)) << "it is taken";
  put("d", part_request("7g.40gb"));
  EXPECT_EQ(
      why_not(part_request(kOne)),
      "the machine has no room for 1g.5gb on its GPUs in MIG mode: GPU 1 has 4g.20gb and 3g.20gb, GPU 2 "
      "has 7g.40gb");
  cluster.release("a");
  EXPECT_EQ(put("e", part_request(kThree)), first);
}

TEST_F(PartsOfANode, WholeGpusAndSharesGetNoneInMigMode) {
  EXPECT_EQ(put("a", testing::gpus(1)).gpus.front().uuid, "n-0");
  EXPECT_EQ(cluster.try_place(testing::gpus(1)), std::nullopt);
  EXPECT_EQ(cluster.try_place(testing::share(500)), std::nullopt);
}

TEST_F(PartsOfANode, OthersInstancesAreLeftAlone) {
  auto node = *cluster.node("n");
  const auto there = instance_of(kThree, 4);
  node.mig.at("n-1").instances = {{1, there.profile_id, there.placement, "MIG-x", 0}};
  node.inventory.devices[2].cordoned = "cordoned by root";
  cluster.set_node(node);
  put("a", part_request(kFour));
  EXPECT_THAT(why_not(part_request(kOne)), HasSubstr("GPU 1 has 4g.20gb and 3g.20gb"));
  EXPECT_TRUE(cluster.possible(part_request(kOne, 14))) << "what is there may go";
}

TEST_F(PartsOfANode, WhatCanNeverBeIsRefused) {
  const auto refusal = [&](const Request& request) { return to_string(cluster.possible(request).error()); };
  EXPECT_THAT(refusal(part_request("1g.10gb")),
              HasSubstr("this machine has no GPU with the MIG profile 1g.10gb: there are 7g.40gb"));
  EXPECT_THAT(refusal(part_request(kOne, 15)), HasSubstr("has GPUs for fewer than 15 × 1g.5gb"));
  Cluster without;
  without.set_node(testing::node("n", {.count = 2}));
  EXPECT_THAT(to_string(without.possible(part_request(kOne)).error()), HasSubstr("has no GPU in MIG mode"));
}

/// However they come and go, no two overlap, and what is told to fit can be taken.
RC_GTEST_PROP(PartsOfNodes, NeverOverlap, ()) {
  Cluster cluster;
  cluster.set_node(with_mig(testing::node("n", {.count = 2}), {0, 1}));
  const auto facts = a100_parts();
  std::map<std::string, Decision> held;
  for (int step = 0; step < 40; ++step) {
    if (!held.empty() && *rc::gen::inRange(0, 3) == 0) {
      const auto id = (*rc::gen::elementOf(held)).first;
      cluster.release(id);
      held.erase(id);
    } else {
      const auto request = part_request((*rc::gen::elementOf(facts.profiles)).name, *rc::gen::inRange(1, 3));
      const auto decision = cluster.try_place(request);
      if (!decision) continue;
      RC_ASSERT(cluster.allocate(std::to_string(step), request, *decision));
      held[std::to_string(step)] = *decision;
    }
    std::map<std::string, CutGpu> gpus;
    for (const auto& [id, decision] : held)
      for (const auto& grant : decision.gpus) {
        auto& gpu = gpus.try_emplace(grant.uuid, CutGpu{&facts, {}}).first->second;
        const Instance one{grant.mig->profile_id, grant.mig->placement};
        RC_ASSERT(fits(gpu, one));
        gpu.taken.push_back(one);
      }
  }
}

}  // namespace
}  // namespace drover::placement

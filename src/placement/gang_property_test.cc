// Gangs on small random clusters, against trying every way to place them (testing/reference.h).
// DROVER_PROPERTY_STEPS sets how many gangs are placed.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/property_steps.h"
#include "placement/gang.h"
#include "placement/testing/clusters.h"
#include "placement/testing/random.h"
#include "placement/testing/reference.h"

namespace drover::placement {
namespace {

using testing::Random;
using testing::Reference;

int gangs() {
  return property_steps(2000);
}

/// Every way to place a gang.
class EveryWay {
 public:
  EveryWay(Reference reference, const Gang& gang) : reference_(std::move(reference)), gang_(gang) {
    place(0, {});
  }
  /// How few nodes can do; none when there is no way.
  std::optional<std::size_t> fewest_nodes() const { return fewest_; }

 private:
  using Key = std::tuple<std::string, std::vector<std::string>, std::vector<int>>;
  static Key key_of(const Decision& decision) {
    Key key{decision.node, {}, decision.cpus};
    for (const auto& grant : decision.gpus) std::get<1>(key).push_back(grant.uuid);
    return key;
  }

  /// Members that are alike, one after the other, in one order only: from this place on.
  void place(std::size_t rank, const Key& from) {
    if (fewest_ == 1 || (fewest_ && gang_.arrangement != Arrangement::kPack)) return;
    if (rank == gang_.members.size()) {
      fewest_ = std::min(fewest_.value_or(used_.size()), used_.size());
      return;
    }
    const auto& request = gang_.members[rank];
    const bool next_alike = rank + 1 < gang_.members.size() && gang_.members[rank + 1] == request;
    for (const auto& [name, node] : reference_.nodes) {
      const bool used = used_.contains(name);
      if (used && gang_.arrangement == Arrangement::kSpread) continue;
      if (!reference_.fits(node, request)) continue;
      used_.insert(name);
      for (auto& decision : reference_.decisions(node, request)) {
        const auto key = key_of(decision);
        if (key < from) continue;
        reference_.taken[fmt::format("gang-{}", rank)] = {request, std::move(decision)};
        place(rank + 1, next_alike ? key : Key{});
        reference_.taken.erase(fmt::format("gang-{}", rank));
      }
      if (!used) used_.erase(name);
    }
  }

  Reference reference_;
  const Gang& gang_;
  std::set<std::string> used_;
  std::optional<std::size_t> fewest_;
};

/// Members that are alike are packed on the fewest nodes when none needs particular company.
bool countable(const Gang& gang) {
  const auto& first = gang.members.front();
  return std::ranges::all_of(gang.members, [&](const Request& member) { return member == first; }) &&
         first.cpu_affinity != Preference::kRequire &&
         (first.gpu_count() <= 1 ||
          (first.share.whole() && first.gpus.size() == 1 && !first.different_models &&
           !first.interconnect.asks() && first.nic != Preference::kRequire));
}

class Case {
 public:
  explicit Case(std::uint64_t seed)
      : random_(seed), cluster_(random_.one_in(2) ? NodePolicy::kPack : NodePolicy::kSpread) {
    for (int count = 1 + random_.below(3), i = 0; i < count; ++i) {
      auto node = random_.node(fmt::format("n{}", i));
      if (node.inventory.devices.size() > 4) node.inventory.devices.resize(4);
      reference_.nodes[node.name] = node;
      cluster_.set_node(std::move(node));
    }
    for (int i = random_.below(3); i > 0; --i) {
      const auto request = single();
      const auto decision = cluster_.try_place(request);
      if (!decision) continue;
      EXPECT_TRUE(cluster_.allocate(std::to_string(i), request, *decision));
      reference_.taken[std::to_string(i)] = {request, *decision};
    }
    gang_.arrangement = static_cast<Arrangement>(random_.below(3));
    const auto member = single();
    for (int count = 2 + random_.below(3); count > 0; --count)
      gang_.members.push_back(gang_.members.size() < 3 && random_.one_in(3) ? single() : member);
  }

  void check() {
    const auto fewest = EveryWay(reference_, gang_).fewest_nodes();
    const auto answer = place(cluster_, gang_);
    const auto* decisions = std::get_if<std::vector<Decision>>(&answer);
    ASSERT_EQ(decisions != nullptr, fewest.has_value());
    const auto tried = try_place(cluster_, gang_);
    ASSERT_EQ(tried, decisions == nullptr ? std::nullopt : std::optional(*decisions));
    if (decisions != nullptr) check(*decisions, *fewest);
    check_possible();
    (fewest ? with_place : without_place) += 1;
  }

  static inline int with_place = 0;
  static inline int without_place = 0;

 private:
  Request single() {
    auto request = random_.request();
    for (int i = 0; i < 4 && !cluster_.try_place(request); ++i) request = random_.request();
    request.group.clear();
    return request;
  }

  void check(const std::vector<Decision>& decisions, std::size_t fewest) {
    ASSERT_EQ(decisions.size(), gang_.members.size());
    auto taken = reference_;
    std::set<std::string> used;
    for (std::size_t rank = 0; rank < decisions.size(); ++rank) {
      used.insert(decisions[rank].node);
      taken.taken[fmt::format("gang-{}", rank)] = {gang_.members[rank], decisions[rank]};
    }
    ASSERT_EQ(taken.given_twice(), "");
    if (gang_.arrangement == Arrangement::kSpread) {
      ASSERT_EQ(used.size(), gang_.members.size());
    }
    if (gang_.arrangement == Arrangement::kPack && countable(gang_)) {
      ASSERT_EQ(used.size(), fewest);
    }
  }

  void check_possible() const {
    Reference empty;
    for (auto [name, node] : reference_.nodes) {
      node.cordoned.clear();
      for (auto& device : node.inventory.devices) device.unhealthy.clear();
      empty.nodes[name] = node;
    }
    const auto could = EveryWay(empty, gang_).fewest_nodes().has_value();
    const auto status = possible(cluster_, gang_);
    ASSERT_EQ(status.has_value(), could) << (status ? "" : status.error().message);
  }

  Random random_;
  Reference reference_;
  Cluster cluster_;
  Gang gang_;
};

TEST(GangProperty, AgreesWithTryingEveryWay) {
  for (int seed = 1; seed <= gangs(); ++seed) {
    Case(static_cast<std::uint64_t>(seed)).check();
    ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "case " << seed;
  }
  EXPECT_GT(Case::with_place, gangs() / 10);
  EXPECT_GT(Case::without_place, gangs() / 10);
}

/// Takes the same requests in both, and asks both the same questions on the way.
void expect_same(Cluster& a, Cluster& b, Random& random) {
  for (int i = 0; i < 60; ++i) {
    const auto request = random.request();
    const auto answer = a.place(request);
    ASSERT_EQ(answer, b.place(request));
    ASSERT_EQ(a.fitting_positions(request), b.fitting_positions(request));
    for (const auto& node : a.nodes()) ASSERT_EQ(a.place_on(node, request), b.place_on(node, request));
    const auto* decision = std::get_if<Decision>(&answer);
    if (decision == nullptr) continue;
    ASSERT_TRUE(a.allocate(fmt::format("same-{}", i), request, *decision));
    ASSERT_TRUE(b.allocate(fmt::format("same-{}", i), request, *decision));
  }
}

// Also what the policy has learnt: gangs that are only tried out have not come.
TEST(GangProperty, LeavesTheClusterAsItWas) {
  for (const auto policy : {NodePolicy::kPack, NodePolicy::kSpread, NodePolicy::kFragmentation}) {
    Random random(7);
    Cluster cluster(policy);
    for (int i = 0; i < 12; ++i)
      cluster.set_node(testing::node(fmt::format("n{}", i), {.count = 4, .model = "Tesla T4"}));
    for (int i = 0; i < 8; ++i) {
      const auto request = random.request();
      if (const auto decision = cluster.try_place(request))
        ASSERT_TRUE(cluster.allocate(fmt::format("task-{}", i), request, *decision));
    }
    auto before = cluster;
    int placed = 0;
    for (int i = 0; i < 150; ++i) {
      auto member = testing::gpus(1 + i % 2);
      if (i % 2 == 0) member.share.milli = 300;
      member.milli_cpus = 1000;
      Gang gang{{}, static_cast<Arrangement>(i % 3)};
      gang.members.assign(i % 5 == 0 ? 400 : 4, member);
      placed += try_place(cluster, gang) ? 1 : 0;
    }
    EXPECT_GT(placed, 0);
    EXPECT_LT(placed, 150);
    expect_same(cluster, before, random);
    ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "policy " << static_cast<int>(policy);
  }
}

}  // namespace
}  // namespace drover::placement

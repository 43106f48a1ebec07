// Random clusters and streams of requests, against testing/reference.h and against clusters that were built
// anew. DROVER_PROPERTY_STEPS sets how many steps are made in all.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/property_steps.h"
#include "placement/cluster.h"
#include "placement/gang.h"
#include "placement/testing/random.h"
#include "placement/testing/reference.h"

namespace drover::placement {
namespace {

using testing::Random;
using testing::Reference;

constexpr int kStepsOfOneHistory = 200;

int steps() {
  return property_steps(4000);
}

/// One history: a cluster and the reference, in step.
class ClusterHistory {
 public:
  ClusterHistory(std::uint64_t seed, NodePolicy policy) : random_(seed), policy_(policy), cluster_(policy_) {
    for (int count = 1 + random_.below(5); count > 0; --count)
      set_node(random_.node(fmt::format("n{}", names_++)));
  }

  void step() {
    const auto what = random_.below(20);
    if (what < 9)
      place();
    else if (what < 14)
      release();
    else if (what < 15)
      change_node();
    else if (what < 16)
      add_or_remove_node();
    else if (what < 18)
      place_gang();
    else if (what < 19)
      compare_with_rebuilt(random_.request());
    else
      copy();
  }

 private:
  void set_node(Node node) {
    // What runs stays, even where the new hardware has no room for it: such histories say nothing about sums.
    overcommitted_ = overcommitted_ || (reference_.nodes.contains(node.name) && !reference_.taken.empty());
    reference_.nodes[node.name] = node;
    cluster_.set_node(std::move(node));
  }

  Cluster rebuilt() const {
    Cluster fresh(policy_);
    for (const auto& name : cluster_.nodes()) fresh.set_node(*cluster_.node(name));
    for (const auto& [id, taken] : reference_.taken) fresh.restore(id, taken.request, taken.decision);
    return fresh;
  }

  void check_answer(const Request& request, const Answer& answer) {
    if (const auto* decision = std::get_if<Decision>(&answer)) {
      ASSERT_EQ(reference_.wrong_with(request, *decision), "") << decision->node;
      ASSERT_TRUE(request.group.size() > 0 || cluster_.possible(request));
      return;
    }
    const auto& reasons = std::get<Reasons>(answer);
    for (const auto& [name, node] : reference_.nodes) ASSERT_FALSE(reference_.fits(node, request)) << name;
    ASSERT_FALSE(describe(reasons).empty());
    int counted = 0;
    for (const auto& reason : reasons.list) counted += reason.nodes;
    if (reasons.nodes > 1) {
      ASSERT_EQ(counted, reasons.nodes);
    }
  }

  /// Names, best first.
  static std::vector<std::string> fitting_in(Cluster& cluster, const Request& request) {
    std::vector<std::string> names;
    const auto nodes = cluster.nodes();
    for (const auto position : cluster.fitting_positions(request)) names.push_back(nodes.at(position));
    return names;
  }

  void check_nodes_one_by_one(const Request& request) {
    const auto fitting = fitting_in(cluster_, request);
    const std::set<std::string> names(fitting.begin(), fitting.end());
    ASSERT_EQ(names.size(), fitting.size());
    for (const auto& [name, node] : reference_.nodes) {
      const auto answer = cluster_.place_on(name, request);
      const auto* decision = std::get_if<Decision>(&answer);
      ASSERT_EQ(decision != nullptr, names.contains(name)) << name;
      ASSERT_EQ(decision != nullptr, reference_.fits(node, request)) << name;
      if (decision != nullptr) {
        ASSERT_EQ(decision->node, name);
        ASSERT_EQ(reference_.wrong_with(request, *decision), "");
      } else {
        ASSERT_FALSE(std::get<Reasons>(answer).list.empty());
      }
    }
  }

  void place() {
    const auto request = random_.request();
    ASSERT_TRUE(validate(request));
    const auto answer = cluster_.place(request);
    ASSERT_NO_FATAL_FAILURE(check_answer(request, answer));
    if (random_.one_in(3)) ASSERT_NO_FATAL_FAILURE(check_nodes_one_by_one(request));
    check_possible(request);
    const auto tried = cluster_.try_place(request);
    const auto* decision = std::get_if<Decision>(&answer);
    ASSERT_EQ(tried, decision == nullptr ? std::nullopt : std::optional(*decision));
    if (decision != nullptr) allocate(request, *decision);
  }

  void check_possible(const Request& request) {
    bool could = false;
    for (const auto& [name, node] : reference_.nodes) could = could || reference_.could_fit(node, request);
    const auto status = cluster_.possible(request);
    ASSERT_EQ(status.has_value(), could) << (status ? "" : status.error().message);
    if (!status) {
      ASSERT_EQ(status.error().kind, ErrorKind::kInvalid);
      ASSERT_FALSE(status.error().path.empty() && !reference_.nodes.empty());
    }
  }

  void allocate(const Request& request, const Decision& decision) {
    const auto id = fmt::format("task-{}", count_++);
    ASSERT_TRUE(cluster_.allocate(id, request, decision));
    ASSERT_FALSE(cluster_.allocate(id, request, decision));
    reference_.taken[id] = {request, decision};
    ASSERT_EQ(*cluster_.find(id), decision);
    if (!overcommitted_) {
      ASSERT_EQ(reference_.given_twice(), "");
    }
  }

  void release() {
    if (reference_.taken.empty()) return;
    const auto victim =
        std::next(reference_.taken.begin(), random_.below(static_cast<int>(reference_.taken.size())));
    cluster_.release(victim->first);
    ASSERT_EQ(cluster_.find(victim->first), nullptr);
    reference_.taken.erase(victim);
    if (reference_.taken.empty()) overcommitted_ = false;
  }

  void change_node() {
    if (reference_.nodes.empty()) return;
    auto node =
        std::next(reference_.nodes.begin(), random_.below(static_cast<int>(reference_.nodes.size())))->second;
    random_.change(node);
    set_node(std::move(node));
  }

  void add_or_remove_node() {
    if (random_.one_in(2) && reference_.nodes.size() < 6)
      return set_node(random_.node(fmt::format("n{}", names_++)));
    if (reference_.nodes.empty()) return;
    const auto name =
        std::next(reference_.nodes.begin(), random_.below(static_cast<int>(reference_.nodes.size())))->first;
    const bool used = std::ranges::any_of(
        reference_.taken, [&](const auto& entry) { return entry.second.decision.node == name; });
    ASSERT_EQ(cluster_.remove_node(name).has_value(), !used);
    if (!used) reference_.nodes.erase(name);
  }

  void place_gang() {
    Gang gang{{}, static_cast<Arrangement>(random_.below(3))};
    const auto member = random_.request();
    for (int count = 1 + random_.below(4); count > 0; --count)
      gang.members.push_back(random_.one_in(3) ? random_.request() : member);
    if (!validate(gang)) return;
    const auto before = free();
    const auto answer = placement::place(cluster_, gang);
    ASSERT_EQ(free(), before);
    const auto* decisions = std::get_if<std::vector<Decision>>(&answer);
    ASSERT_EQ(decisions == nullptr, !placement::try_place(cluster_, gang));
    if (decisions == nullptr) {
      ASSERT_FALSE(describe(std::get<Reasons>(answer)).empty());
      if (gang.arrangement == Arrangement::kSpread) {
        ASSERT_FALSE(spreadable(gang, 0, {}));
      }
      return;
    }
    if (std::ranges::all_of(gang.members, [](const Request& member) { return member.group.empty(); })) {
      ASSERT_TRUE(placement::possible(cluster_, gang));
    }
    ASSERT_EQ(decisions->size(), gang.members.size());
    std::set<std::string> used;
    for (const auto& decision : *decisions) used.insert(decision.node);
    if (gang.arrangement == Arrangement::kSpread) {
      ASSERT_EQ(used.size(), gang.members.size());
    }
    for (std::size_t rank = 0; rank < decisions->size(); ++rank)
      allocate(gang.members[rank], (*decisions)[rank]);
  }

  /// Whether there is a way to give each member from this one on a node of its own.
  bool spreadable(const Gang& gang, std::size_t rank, std::set<std::string> used) const {
    if (rank == gang.members.size()) return true;
    for (const auto& [name, node] : reference_.nodes) {
      if (!reference_.fits(node, gang.members[rank]) || !used.insert(name).second) continue;
      if (spreadable(gang, rank + 1, used)) return true;
      used.erase(name);
    }
    return false;
  }

  /// The same history in fewer words has the same answers, unless the policy learns from history.
  void compare_with_rebuilt(const Request& request) {
    if (policy_ == NodePolicy::kFragmentation) return;
    auto fresh = rebuilt();
    ASSERT_EQ(cluster_.place(request), fresh.place(request));
    ASSERT_EQ(fitting_in(cluster_, request), fitting_in(fresh, request));
  }

  /// What happens to a copy does not happen to the original.
  void copy() {
    auto kept = cluster_;
    const auto request = random_.request();
    const auto before = free();
    const auto answer = kept.place(request);
    ASSERT_EQ(answer, cluster_.place(request));
    if (const auto* decision = std::get_if<Decision>(&answer)) {
      ASSERT_TRUE(kept.allocate("copy", request, *decision));
    }
    if (!reference_.taken.empty()) kept.release(reference_.taken.begin()->first);
    for (const auto& name : kept.nodes()) {
      auto node = *kept.node(name);
      random_.change(node);
      kept.set_node(std::move(node));
    }
    kept.place(request);
    ASSERT_EQ(free(), before);
    ASSERT_EQ(answer, cluster_.place(request));
    compare_with_rebuilt(request);
  }

  std::vector<std::array<std::int64_t, 4>> free() const {
    std::vector<std::array<std::int64_t, 4>> all;
    for (const auto& name : cluster_.nodes()) {
      const auto now = cluster_.free(name);
      all.push_back({now.gpus, now.gpu_milli, now.milli_cpus, static_cast<std::int64_t>(now.memory_bytes)});
    }
    return all;
  }

  Random random_;
  NodePolicy policy_;
  Cluster cluster_;
  Reference reference_;
  int names_ = 0;
  int count_ = 0;
  bool overcommitted_ = false;
};

void run(NodePolicy policy, int all_steps) {
  for (int made = 0, seed = 1; made < all_steps; ++seed) {
    ClusterHistory history(static_cast<std::uint64_t>(seed), policy);
    for (int i = 0; i < kStepsOfOneHistory && made < all_steps; ++i, ++made) {
      history.step();
      ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "history " << seed << ", step " << i;
    }
  }
}

TEST(ClusterProperty, PackAgreesWithTryingEverything) {
  run(NodePolicy::kPack, steps() / 2);
}

TEST(ClusterProperty, SpreadAgreesWithTryingEverything) {
  run(NodePolicy::kSpread, steps() / 2);
}

// Few steps: it solves its prices anew whenever a node comes or goes.
TEST(ClusterProperty, FragmentationAgreesWithTryingEverything) {
  run(NodePolicy::kFragmentation, std::min(steps(), 100));
}

}  // namespace
}  // namespace drover::placement

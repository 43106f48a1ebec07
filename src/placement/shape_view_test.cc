#include "placement/shape_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "placement/testing/clusters.h"

namespace drover::placement {
namespace {

using testing::Gpus;
using testing::gpus;
using testing::kGiB;
using testing::node;

/// A table of nodes of three kinds, and what looking at every node says of it.
class ShapeViewTest : public ::testing::Test {
 protected:
  static constexpr int kNodes = 300;  // several blocks, and one that is not full

  ShapeViewTest() {
    const std::array kinds{node("", Gpus{.count = 4}), node("", Gpus{.count = 8, .nvlinks = 2}),
                           node("", Gpus{})};
    for (std::size_t i = 0; i < kinds.size(); ++i)
      kinds_.push_back(std::make_shared<const NodeKind>(make_node_kind(kinds[i], static_cast<int>(i))));
    context_.worth = {0, 1, 0};
    for (int i = 0; i < kNodes; ++i) append(kinds[below(3)]);
  }

  std::size_t below(std::size_t bound) { return random_() % bound; }

  void append(Node made) {
    made.name = "n" + std::to_string(nodes_.size());
    const auto& kind = kinds_[made.inventory.devices.empty() ? 2 : made.inventory.devices.size() == 8];
    NodeEntry entry{
        .node = std::make_shared<const Node>(made), .kind = kind, .state = make_node_state(made, *kind)};
    nodes_.append(std::move(entry));
  }

  /// Something is taken from a node, or all of it comes free.
  void change_one() {
    nodes_.change(below(nodes_.size()), [&](NodeEntry& entry) {
      const auto amount = static_cast<std::int64_t>(below(20));
      take(entry.state, 0, 1000 * amount, static_cast<std::int64_t>(kGiB) * amount);
      const auto devices = entry.state.devices.size();
      if (devices > 0) take(entry.state, {static_cast<int>(below(devices)), 250, 0});
      if (entry.state.free_milli_cpus < 0 || below(20) == 0)
        entry.state = make_node_state(*entry.node, *entry.kind);
    });
  }

  Request request() {
    auto request = below(4) == 0 ? Request{} : gpus(1 << below(4));
    if (request.gpu_count() > 0 && below(2) == 0) request.share.milli = 250;
    if (request.gpu_count() > 1 && below(2) == 0) request.interconnect.min_nvlinks = 1;
    request.milli_cpus = 1000 * static_cast<std::int64_t>(below(60));
    request.memory_bytes = kGiB * below(60);
    return request;
  }

  void check(const Request& request) {
    const Shape shape(request);
    std::vector<std::pair<Score, std::size_t>> fitting;
    std::map<Obstacle, std::pair<int, std::size_t>> obstacles;
    for (std::size_t slot = 0; slot < nodes_.size(); ++slot) {
      const auto found = evaluate(context_, nodes_.at(slot), shape, nullptr);
      const auto obstacle = found.obstacle ? found.obstacle : host_obstacle(nodes_.at(slot).state, request);
      if (obstacle)
        ++obstacles.try_emplace(*obstacle, 0, slot).first->second.first;
      else
        fitting.emplace_back(found.score, slot);
    }
    std::ranges::sort(fitting);
    const auto& view = views_.view(request, nodes_, context_);
    const auto best = view.best(nodes_, context_, request);
    ASSERT_EQ(best, fitting.empty() ? std::nullopt : std::optional(fitting.front().second));
    std::vector<std::size_t> slots;
    for (const auto& [score, slot] : fitting) slots.push_back(slot);
    ASSERT_EQ(view.fitting(nodes_, context_, request), slots);
    if (best) return;
    const auto tallies = view.tallies(nodes_, request.milli_cpus);
    ASSERT_EQ(tallies.size(), obstacles.size());
    for (const auto& tally : tallies)
      ASSERT_EQ(std::pair(tally.nodes, tally.first), obstacles.at(tally.obstacle));
  }

  std::mt19937_64 random_{7};
  std::vector<std::shared_ptr<const NodeKind>> kinds_;
  PolicyContext context_;
  NodeTable nodes_;
  ViewCache views_;
};

TEST_F(ShapeViewTest, AgreesWithLookingAtEveryNode) {
  for (int round = 0; round < 2000; ++round) {
    // Now and then so much changes at once that the table does not remember it all.
    for (auto changes = below(100) == 0 ? 2000 : below(8); changes > 0; --changes) change_one();
    ASSERT_NO_FATAL_FAILURE(check(request()));
    if (below(200) == 0) append(node("", Gpus{.count = 4}));
  }
}

TEST_F(ShapeViewTest, AgreesWithLookingAtEveryNodeWhereCpusCount) {
  context_.policy = NodePolicy::kFragmentation;
  std::vector<TypicalRequest> mix;
  for (int i = 0; i < 30; ++i) mix.push_back({request(), 1});
  context_.fragmentation.set_mix(mix);
  std::vector<const NodeState*> states;
  for (std::size_t slot = 0; slot < nodes_.size(); ++slot) states.push_back(&nodes_.at(slot).state);
  context_.fragmentation.update(states);
  for (int round = 0; round < 2000; ++round) {
    for (auto changes = below(8); changes > 0; --changes) change_one();
    ASSERT_NO_FATAL_FAILURE(check(request()));
  }
}

TEST_F(ShapeViewTest, IsNotChangedByItsCopy) {
  const auto wanted = gpus(8);
  ASSERT_NO_FATAL_FAILURE(check(wanted));
  auto other_nodes = nodes_;
  auto other_views = views_;
  for (int i = 0; i < 50; ++i) change_one();
  ASSERT_NO_FATAL_FAILURE(check(wanted));
  std::swap(nodes_, other_nodes);
  std::swap(views_, other_views);
  ASSERT_NO_FATAL_FAILURE(check(wanted));
}

TEST_F(ShapeViewTest, ForgetsTheShapesThatWereUsedLongAgo) {
  for (int milli = 1; milli < 1000; ++milli) {
    auto wanted = gpus(1);
    wanted.share.milli = milli;
    ASSERT_NO_FATAL_FAILURE(check(wanted));
    change_one();
  }
}

}  // namespace
}  // namespace drover::placement

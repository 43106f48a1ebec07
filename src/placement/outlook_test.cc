#include "placement/outlook.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "placement/testing/clusters.h"

namespace drover::placement {
namespace {

using testing::gpus;
using testing::Gpus;
using testing::share;

/// Nodes that live as long as the fixture.
class Nodes {
 public:
  NodeState& add(const Gpus& what, std::int64_t milli_cpus = 64'000) {
    auto node = testing::node("n", what);
    node.milli_cpus = milli_cpus;
    kinds_.push_back(make_node_kind(node, static_cast<int>(kinds_.size())));
    states_.push_back(make_node_state(node, kinds_.back()));
    return states_.back();
  }
  void show(Outlook& outlook) const {
    std::vector<const NodeState*> all;
    for (const auto& state : states_) all.push_back(&state);
    outlook.update(all);
  }

 private:
  std::deque<NodeKind> kinds_;
  std::deque<NodeState> states_;
};

NodeState with_taken(NodeState node, int device, int milli, std::int64_t milli_cpus = 0) {
  take(node, {device, milli, 0});
  take(node, 0, milli_cpus, 0);
  return node;
}

double loss(const Outlook& outlook, const NodeState& before, const NodeState& after) {
  return outlook.worth(before) - outlook.worth(after);
}

TEST(Outlook, SeesNoWorthInRoomThatNobodyCouldUse) {
  Nodes nodes;
  for (int i = 0; i < 20; ++i) nodes.add({.count = 8});
  const auto& node = nodes.add({.count = 8});
  Outlook outlook({{share(500), 1}, {share(300), 1}});
  nodes.show(outlook);
  const auto started = with_taken(with_taken(node, 0, 500), 1, 400);
  // The first GPU is used up by a 500; the second has room for two 300s, and a 500 would leave 100 to nobody.
  EXPECT_LT(loss(outlook, started, with_taken(started, 0, 500)),
            loss(outlook, started, with_taken(started, 1, 500)) - 30);
  EXPECT_NEAR(outlook.worth(with_taken(node, 0, 700)), outlook.worth(with_taken(node, 0, 900)) + 300, 60);
  EXPECT_NEAR(outlook.worth(with_taken(node, 0, 900)), outlook.worth(with_taken(node, 0, 1000)), 1e-6);
}

TEST(Outlook, PricesWhatIsScarce) {
  Nodes nodes;
  const auto& rare = nodes.add({.count = 2, .model = "A100"});
  const auto& common = nodes.add({.count = 8, .model = "T4"});
  for (int i = 0; i < 10; ++i) nodes.add({.count = 8, .model = "T4"});
  auto wants_rare = gpus(1);
  wants_rare.gpus[0].filter.models = {"A100"};
  Outlook outlook({{gpus(1), 3}, {wants_rare, 1}});
  nodes.show(outlook);
  EXPECT_GT(loss(outlook, rare, with_taken(rare, 0, 1000)),
            loss(outlook, common, with_taken(common, 0, 1000)) + 20);
}

TEST(Outlook, LeavesTheCpusWhereGpusNeedThem) {
  Nodes nodes;
  const auto& tight = nodes.add({.count = 8}, 96'000);
  const auto& rich = nodes.add({.count = 2}, 104'000);
  auto whole = gpus(1);
  whole.milli_cpus = 11'500;
  Outlook outlook({{whole, 4}, {testing::cpu_only(12'000), 1}});
  nodes.show(outlook);
  EXPECT_GT(loss(outlook, tight, with_taken(tight, 0, 0, 12'000)),
            loss(outlook, rich, with_taken(rich, 0, 0, 12'000)) + 100);
}

TEST(Outlook, KeepsNodesWholeForThoseThatNeedThem) {
  Nodes nodes;
  const auto& node = nodes.add({.count = 8});
  nodes.add({.count = 8});
  Outlook outlook({{gpus(8), 1}, {gpus(1), 2}});
  nodes.show(outlook);
  const auto started = with_taken(node, 0, 1000);
  EXPECT_GT(loss(outlook, node, started), loss(outlook, started, with_taken(started, 1, 1000)));
}

TEST(Outlook, LeavesNodesToThoseWhoseCpusNoOtherNodeHas) {
  Nodes nodes;
  const auto& large = nodes.add({.count = 8}, 128'000);
  const auto& small = nodes.add({.count = 8}, 96'000);
  for (int i = 0; i < 10; ++i) nodes.add({.count = 8}, 96'000);
  auto heavy = gpus(8);
  heavy.milli_cpus = 120'000;
  auto usual = gpus(8);
  usual.milli_cpus = 64'000;
  Outlook outlook({{heavy, 1}, {usual, 4}, {gpus(1), 30}});
  nodes.show(outlook);
  const auto taken = [](NodeState node) {
    for (int device = 0; device < 8; ++device) take(node, {device, 1000, 0});
    take(node, 0, 64'000, 0);
    return node;
  };
  EXPECT_GT(loss(outlook, large, taken(large)), loss(outlook, small, taken(small)) + 20);
}

TEST(Outlook, KnowsNothingWithoutGpusInTheMix) {
  Nodes nodes;
  const auto& node = nodes.add({.count = 8});
  Outlook none;
  nodes.show(none);
  EXPECT_EQ(none.worth(node), 0);
  Outlook cpus({{testing::cpu_only(1000), 1}, {gpus(1), 0}, {gpus(100), 1}});
  nodes.show(cpus);
  EXPECT_GE(cpus.worth(node), 0);
}

TEST(Outlook, NoPlacementGains) {
  std::mt19937 random(7);
  const auto below = [&](int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random); };
  for (int round = 0; round < 15; ++round) {
    Nodes nodes;
    auto& node = nodes.add({.count = 4}, 32'000);
    nodes.add({.count = 8}, 64'000);
    std::vector<TypicalRequest> mix;
    for (int i = 0; i < 5; ++i) {
      const auto kind = below(4);
      auto request = kind == 0   ? testing::cpu_only(0)
                     : kind == 1 ? share(1 + below(999))
                                 : gpus(kind == 3 ? 4 : 1);
      request.milli_cpus = 1000 + below(12'000);
      mix.push_back({request, 1.0 + below(9)});
    }
    Outlook outlook(mix);
    nodes.show(outlook);
    for (int i = 0; i < 20; ++i) {
      const auto device = below(4);
      const auto milli = below(node.devices[static_cast<std::size_t>(device)].free_milli + 1);
      const auto after = with_taken(node, device, milli, below(2000));
      EXPECT_LE(outlook.worth(after), outlook.worth(node) + 1e-6);
      node = after;
    }
  }
}

}  // namespace
}  // namespace drover::placement

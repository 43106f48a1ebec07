#include "placement/fragmentation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "placement/cluster.h"
#include "placement/testing/clusters.h"

namespace drover::placement {
namespace {

using testing::cpu_only;
using testing::gpus;
using testing::share;

Cluster fragmentation_cluster(int nodes, int gpus_each) {
  return testing::cluster_of(nodes, gpus_each, NodePolicy::kFragmentation);
}

Decision put(Cluster& cluster, const std::string& id, const Request& request) {
  const auto decision = cluster.try_place(request);
  EXPECT_TRUE(decision.has_value());
  EXPECT_TRUE(cluster.allocate(id, request, *decision).has_value());
  return *decision;
}

TEST(Fragmentation, PairsWhatFillsAGpuTogether) {
  auto cluster = fragmentation_cluster(4, 2);
  cluster.set_workload({{share(700), 1}, {share(600), 1}, {share(400), 1}, {share(300), 1}});
  const auto large = put(cluster, "a", share(700));
  const auto medium = put(cluster, "b", share(600));
  EXPECT_NE(large.gpus[0].uuid, medium.gpus[0].uuid);
  // Both would fit beside the one of 600; only together with its partner nothing is left over.
  EXPECT_EQ(put(cluster, "c", share(300)).gpus[0].uuid, large.gpus[0].uuid);
  EXPECT_EQ(put(cluster, "d", share(400)).gpus[0].uuid, medium.gpus[0].uuid);
}

TEST(Fragmentation, OpensIdleGpusToWhatWouldWasteThemLess) {
  const auto opened_by = [](const std::vector<TypicalRequest>& mix, int milli) {
    auto cluster = fragmentation_cluster(20, 1);
    cluster.set_workload(mix);
    std::set<std::string> opened;
    for (int i = 0; i < 10; ++i) opened.insert(put(cluster, std::to_string(i), share(milli)).node);
    return opened.size();
  };
  // The 810s waste 190 of a GPU, and nobody may refuse them while one is idle; the 470s find partners later.
  EXPECT_EQ(opened_by({{share(810), 1}, {share(470), 3}}, 470), 10u);
  // Halves waste nothing, wherever they are: idle GPUs stay whole.
  EXPECT_EQ(opened_by({{gpus(1), 1}, {share(500), 1}}, 500), 5u);
}

TEST(Fragmentation, KeepsTheCpusBesideIdleGpus) {
  Cluster cluster(NodePolicy::kFragmentation);
  auto small = testing::node("small", {.count = 8});
  auto large = testing::node("large", {.count = 2});
  large.milli_cpus = small.milli_cpus;
  cluster.set_node(small);
  cluster.set_node(large);
  auto whole = gpus(1);
  whole.milli_cpus = 8'000;
  cluster.set_workload({{whole, 3}, {cpu_only(16'000), 1}});
  EXPECT_EQ(put(cluster, "a", cpu_only(16'000)).node, "large");
}

TEST(Fragmentation, LearnsTheMixFromWhatIsPlaced) {
  const auto node = testing::node("n", {.count = 8});
  const auto kind = make_node_kind(node, 0);
  auto state = make_node_state(node, kind);
  take(state, {0, 700, 0});
  const Shape small(share(300));
  Fragmentation policy;
  EXPECT_FALSE(policy.worth(state));
  int placed = 0;
  for (; !policy.due() && placed < 10'000; ++placed)
    policy.note_placed(placed % 2 == 0 ? gpus(1) : share(300));
  ASSERT_TRUE(policy.due());
  policy.update({&state});
  EXPECT_FALSE(policy.due());
  const auto worth = policy.worth(state).value();
  EXPECT_LT(policy.score(state, worth, small, device_bit(0)),
            policy.score(state, worth, small, device_bit(1)));
}

TEST(Fragmentation, WithoutAMixItPacks) {
  auto cluster = fragmentation_cluster(3, 2);
  Cluster packed(NodePolicy::kPack);
  for (int i = 0; i < 3; ++i) packed.set_node(testing::node("n" + std::to_string(i), {.count = 2}));
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(put(cluster, std::to_string(i), share(400)), put(packed, std::to_string(i), share(400)));
}

const std::vector<TypicalRequest> kMix{{share(700), 2}, {share(300), 1}, {gpus(2), 1}, {cpu_only(4'000), 1}};

/// With its prices solved, which copies share.
Cluster prepared() {
  auto cluster = fragmentation_cluster(4, 4);
  cluster.set_workload(kMix);
  cluster.try_place(kMix[0].request);
  return cluster;
}

RC_GTEST_PROP(Fragmentation, PlacesWhateverFitsAndTheSameEveryTime, ()) {
  static const auto kPrepared = prepared();
  const auto count = *rc::gen::inRange(1, 80);
  auto first = kPrepared;
  auto second = kPrepared;
  for (int i = 0; i < count; ++i) {
    const auto& request = kMix[*rc::gen::inRange<std::size_t>(0, kMix.size())].request;
    const auto decision = first.try_place(request);
    RC_ASSERT(decision == second.try_place(request));
    RC_ASSERT(decision.has_value() == (first.count_fitting(request) > 0));
    if (!decision) continue;
    RC_ASSERT(first.allocate(std::to_string(i), request, *decision).has_value());
    RC_ASSERT(second.allocate(std::to_string(i), request, *decision).has_value());
    if (*rc::gen::inRange(0, 4) == 0) {
      first.release(std::to_string(i));
      second.release(std::to_string(i));
    }
  }
}

}  // namespace
}  // namespace drover::placement

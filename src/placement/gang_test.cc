#include "placement/gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/testing/clusters.h"

namespace drover::placement {
namespace {

using ::testing::ElementsAre;
using testing::Gpus;
using testing::gpus;
using testing::node;

Cluster cluster_of(int nodes, int gpus_each) {
  Cluster cluster;
  for (int i = 0; i < nodes; ++i) cluster.set_node(node("n" + std::to_string(i), Gpus{.count = gpus_each}));
  return cluster;
}

std::vector<std::string> nodes_of(Cluster& cluster, const Gang& gang) {
  std::vector<std::string> names;
  const auto answer = place(cluster, gang);
  if (const auto* decisions = std::get_if<std::vector<Decision>>(&answer))
    for (const auto& decision : *decisions) names.push_back(decision.node);
  return names;
}

TEST(Gang, PutsNeighbouringRanksTogether) {
  auto cluster = cluster_of(3, 4);
  const Gang gang{{gpus(2), gpus(2), gpus(2), gpus(2)}, Arrangement::kPack};
  EXPECT_THAT(nodes_of(cluster, gang), ElementsAre("n0", "n0", "n1", "n1"));
  EXPECT_EQ(cluster.free("n0").gpus, 4);
}

TEST(Gang, SpreadsOverDistinctNodes) {
  auto cluster = cluster_of(3, 4);
  Gang gang{{gpus(1), gpus(1), gpus(1)}, Arrangement::kSpread};
  EXPECT_THAT(nodes_of(cluster, gang), ElementsAre("n0", "n1", "n2"));
  gang.members.push_back(gpus(1));
  const auto reasons = std::get<Reasons>(place(cluster, gang));
  EXPECT_THAT(describe(reasons), ElementsAre("3 of 4 members fit now, each on a node of its own"));
}

TEST(Gang, IsAllOrNothing) {
  auto cluster = cluster_of(2, 4);
  const Gang gang{{gpus(3), gpus(3), gpus(3)}, Arrangement::kAny};
  EXPECT_THAT(describe(std::get<Reasons>(place(cluster, gang))), ElementsAre("2 of 3 members fit now"));
  EXPECT_EQ(cluster.free("n0").gpus, 4);
  EXPECT_EQ(possible(cluster, gang).error().path, "/members");
  EXPECT_EQ(possible(cluster, {{gpus(1), gpus(5)}}).error().path, "/members/1/gpus/0/count");
}

TEST(Gang, PlacesLargerMembersFirst) {
  auto cluster = cluster_of(2, 4);
  EXPECT_THAT(nodes_of(cluster, {{gpus(1), gpus(4), gpus(1)}}), ElementsAre("n1", "n0", "n1"));
}

TEST(Gang, RefusesWhatMakesNoSense) {
  EXPECT_EQ(validate(Gang{}).error().path, "/members");
  EXPECT_EQ(validate(Gang{{gpus(1), gpus(0)}}).error().path, "/members/1/gpus/0/count");
  auto grouped = gpus(1);
  grouped.group = "g";
  EXPECT_EQ(validate(Gang{{grouped, grouped}, Arrangement::kSpread}).error().path, "/members/1/group");
  EXPECT_TRUE(validate(Gang{{grouped, grouped}, Arrangement::kPack}));
}

}  // namespace
}  // namespace drover::placement

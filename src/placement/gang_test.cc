#include "placement/gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "placement/testing/clusters.h"

namespace drover::placement {
namespace {

using testing::cluster_of;
using ::testing::ElementsAre;
using testing::Gpus;
using testing::gpus;
using testing::node;

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
  EXPECT_THAT(describe(reasons), ElementsAre("3 of 4 members find a node of their own now"));
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

TEST(Gang, PacksOnTheFewestNodes) {
  Cluster cluster;
  for (const auto& [name, count] : {std::pair{"small", 2}, {"middle", 4}, {"large", 8}, {"other", 3}})
    cluster.set_node(node(name, Gpus{.count = count}));
  EXPECT_THAT(nodes_of(cluster, {std::vector(6, gpus(1))}), ::testing::Each("large"));
  // The rest goes where it leaves least, and the nodes are filled in their order.
  EXPECT_THAT(
      nodes_of(cluster, {std::vector(10, gpus(1))}),
      ElementsAre("small", "small", "large", "large", "large", "large", "large", "large", "large", "large"));
  EXPECT_THAT(nodes_of(cluster, {std::vector(4, gpus(1))}), ::testing::Each("middle"));
}

TEST(Gang, FindsEveryMemberItsOwnNodeWhenThatTakesThought) {
  Cluster cluster;
  cluster.set_node(node("t4", Gpus{.count = 1, .model = "T4"}));
  cluster.set_node(node("a100", Gpus{.count = 1, .model = "A100", .memory = 80 * testing::kGiB}));
  auto picky = gpus(1);
  picky.gpus.front().filter.models = {"T4"};
  // By itself, the first would take the cheaper node, which is the only one for the second.
  EXPECT_THAT(nodes_of(cluster, {{gpus(1), picky}, Arrangement::kSpread}), ElementsAre("a100", "t4"));
  EXPECT_THAT(nodes_of(cluster, {{gpus(1), picky}, Arrangement::kAny}), ElementsAre("a100", "t4"));
}

TEST(Gang, GoesBackWhenTheFirstWayFails) {
  Cluster cluster;
  auto many_cpus = node("cpus", Gpus{.count = 2});
  auto few_cpus = node("few", Gpus{.count = 2});
  few_cpus.milli_cpus = 4000;
  cluster.set_node(few_cpus);
  cluster.set_node(many_cpus);
  auto hungry = gpus(1);
  hungry.milli_cpus = 40'000;
  auto modest = gpus(2);
  modest.milli_cpus = 1000;
  auto slim = gpus(1);
  EXPECT_THAT(nodes_of(cluster, {{modest, hungry, slim}, Arrangement::kAny}),
              ElementsAre("few", "cpus", "cpus"));
}

TEST(Gang, TakesOtherGpusWhenTheBestOnesLeaveNoneForTheRest) {
  // In a row: the two in the middle are joined best, and then the outer ones are not joined at all.
  auto row = node("row", Gpus{.count = 4});
  for (const auto& [a, b, nvlinks] : {std::tuple{0U, 1U, 1}, {1U, 2U, 2}, {2U, 3U, 1}})
    row.inventory.links[a][b].nvlinks = row.inventory.links[b][a].nvlinks = nvlinks;
  Cluster cluster;
  cluster.set_node(row);
  auto pair = gpus(2);
  pair.interconnect.min_nvlinks = 1;
  const Gang gang{{pair, pair}};
  Effort spent{0};
  EXPECT_FALSE(try_place(cluster, gang, spent));
  Effort effort;
  const auto decisions = try_place(cluster, gang, effort);
  ASSERT_TRUE(decisions);
  EXPECT_NE(decisions->front().gpus.front().uuid, decisions->back().gpus.front().uuid);
  EXPECT_LT(effort.left, Effort().left);
  EXPECT_TRUE(possible(cluster, gang));
}

TEST(Gang, NamesTheMemberThatHasNoPlace) {
  auto cluster = cluster_of(2, 4);
  EXPECT_THAT(describe(std::get<Reasons>(place(cluster, {{gpus(1), gpus(5)}}))),
              ElementsAre("2 nodes: 2 have fewer than 5 GPUs", "it is member 1 that has no place"));
}

TEST(Gang, IsRefusedForGoodWhenTheEmptyClusterCannotHoldIt) {
  auto cluster = cluster_of(2, 4);
  EXPECT_FALSE(possible(cluster, {std::vector(9, gpus(1)), Arrangement::kAny}));
  EXPECT_TRUE(possible(cluster, {std::vector(8, gpus(1)), Arrangement::kAny}));
  EXPECT_FALSE(possible(cluster, {std::vector(3, gpus(1)), Arrangement::kSpread}));
  EXPECT_FALSE(possible(cluster, {{gpus(4), gpus(4), gpus(1)}}));
  EXPECT_FALSE(possible(cluster, {{gpus(3), gpus(3), gpus(2)}}));
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

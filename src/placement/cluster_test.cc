#include "placement/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <numeric>
#include <set>

#include "placement/filter.h"
#include "placement/testing/clusters.h"

namespace drover::placement {
namespace {

using testing::cpu_only;
using ::testing::ElementsAre;
using testing::Gpus;
using testing::gpus;
using testing::kGiB;
using testing::node;

std::vector<std::string> uuids(const Decision& decision) {
  std::vector<std::string> names;
  for (const auto& grant : decision.gpus) names.push_back(grant.uuid);
  return names;
}

Decision placed(Cluster& cluster, const std::string& id, const Request& request) {
  const auto answer = cluster.place(request);
  EXPECT_TRUE(std::holds_alternative<Decision>(answer)) << id;
  if (!std::holds_alternative<Decision>(answer)) return {};
  EXPECT_TRUE(cluster.allocate(id, request, std::get<Decision>(answer)));
  return std::get<Decision>(answer);
}

std::vector<std::string> reasons_for(Cluster& cluster, const Request& request) {
  const auto answer = cluster.place(request);
  return std::holds_alternative<Reasons>(answer) ? describe(std::get<Reasons>(answer))
                                                 : std::vector<std::string>{};
}

TEST(Cluster, PacksOntoTheNodeThatIsLeftWithTheLeast) {
  Cluster cluster;
  for (const auto* name : {"a", "b", "c"}) cluster.set_node(node(name, Gpus{.count = 4}));
  EXPECT_EQ(placed(cluster, "1", gpus(2)).node, "a");
  EXPECT_EQ(placed(cluster, "2", gpus(4)).node, "b");
  EXPECT_EQ(placed(cluster, "3", gpus(1)).node, "a");
  EXPECT_EQ(placed(cluster, "4", gpus(2)).node, "c");
  cluster.release("2");
  EXPECT_EQ(placed(cluster, "5", gpus(1)).node, "a");
  EXPECT_EQ(cluster.free("b").gpus, 4);
}

TEST(Cluster, SpreadsOntoTheNodeThatIsLeftWithTheMost) {
  Cluster cluster(NodePolicy::kSpread);
  for (const auto* name : {"a", "b"}) cluster.set_node(node(name, Gpus{.count = 4}));
  EXPECT_EQ(placed(cluster, "1", gpus(1)).node, "a");
  EXPECT_EQ(placed(cluster, "2", gpus(1)).node, "b");
  EXPECT_EQ(placed(cluster, "3", gpus(2)).node, "a");
  EXPECT_EQ(placed(cluster, "4", gpus(1)).node, "b");
}

TEST(Cluster, KeepsCpuWorkOffGpuNodesUnlessItMust) {
  Cluster cluster;
  cluster.set_node(node("gpu", Gpus{.count = 4}));
  cluster.set_node(node("cpu", Gpus{}));
  EXPECT_EQ(placed(cluster, "1", cpu_only(60'000)).node, "cpu");
  EXPECT_EQ(placed(cluster, "2", cpu_only(60'000)).node, "gpu");
}

TEST(Cluster, KeepsPlainWorkOffRareGpus) {
  Cluster cluster;
  cluster.set_node(node("big", Gpus{.count = 4, .model = "A100", .memory = 80 * kGiB}));
  cluster.set_node(node("small", Gpus{.count = 4, .model = "T4", .memory = 16 * kGiB}));
  EXPECT_EQ(placed(cluster, "1", gpus(4)).node, "small");
  EXPECT_EQ(placed(cluster, "2", gpus(1)).node, "big");
}

TEST(Cluster, PutsASharesOntoTheFullestGpuThatFits) {
  Cluster cluster;
  cluster.set_node(node("a", Gpus{.count = 2}));
  cluster.set_node(node("b", Gpus{.count = 2}));
  const auto share = [](int milli) {
    auto request = gpus(1);
    request.share.milli = milli;
    return request;
  };
  EXPECT_THAT(uuids(placed(cluster, "1", share(500))), ElementsAre("a-0"));
  EXPECT_THAT(uuids(placed(cluster, "2", share(600))), ElementsAre("a-1"));
  EXPECT_THAT(uuids(placed(cluster, "3", share(300))), ElementsAre("a-1"));
  EXPECT_THAT(uuids(placed(cluster, "4", share(300))), ElementsAre("a-0"));
  EXPECT_EQ(placed(cluster, "5", gpus(2)).node, "b");
  EXPECT_EQ(cluster.free("a").gpu_milli, 300);
  EXPECT_EQ(placed(cluster, "6", share(200)).gpus.front(), (Grant{"a-0", 200, 16 * kGiB / 5}));
  EXPECT_THAT(reasons_for(cluster, share(200)), ElementsAre("2 nodes: 2 have no GPU with 0.2 left"));
}

TEST(Cluster, CountsSharesByMemoryExactly) {
  Cluster cluster;
  cluster.set_node(node("a", Gpus{.count = 1, .memory = 16 * kGiB}));
  auto request = gpus(1);
  request.share.memory_bytes = 6 * kGiB;
  EXPECT_EQ(placed(cluster, "1", request).gpus, (std::vector<Grant>{{"a-0", 375, 6 * kGiB}}));
  EXPECT_EQ(placed(cluster, "2", request).gpus, (std::vector<Grant>{{"a-0", 375, 6 * kGiB}}));
  EXPECT_THAT(reasons_for(cluster, request),
              ElementsAre("6 GiB of a GPU's memory are wanted and at most 4 GiB of one are left"));
  request.share.memory_bytes = 4 * kGiB;
  EXPECT_EQ(placed(cluster, "3", request).gpus, (std::vector<Grant>{{"a-0", 250, 4 * kGiB}}));
  EXPECT_FALSE(reasons_for(cluster, gpus(1)).empty());
}

TEST(Cluster, FindsWhatTheFiltersAskFor) {
  Cluster cluster;
  auto old_driver = node("old", Gpus{.count = 2, .model = "NVIDIA A100-SXM4-80GB"});
  old_driver.inventory.driver_version = "470.82.01";
  cluster.set_node(old_driver);
  cluster.set_node(node("t4", Gpus{.count = 2, .model = "Tesla T4"}));
  auto request = gpus(1);
  request.gpus.front().filter.models = {"a100"};
  EXPECT_EQ(std::get<Decision>(cluster.place(request)).node, "old");
  request.gpus.front().filter.min_driver = "470.103";
  EXPECT_THAT(reasons_for(cluster, request),
              ElementsAre("2 nodes: 1 has no model a100, 1 lacks driver 470.103 or newer (has 470.82.01)"));
  request.gpus.front().filter.models = {"A10"};
  EXPECT_THAT(reasons_for(cluster, request), ElementsAre("2 nodes: 2 have no model A10"));
}

TEST(Cluster, MixesModelsOnOneNode) {
  Cluster cluster;
  auto mixed = node("mixed", Gpus{.count = 4, .model = "A100"});
  mixed.inventory.devices[1].model = mixed.inventory.devices[3].model = "T4";
  cluster.set_node(mixed);
  Request request = gpus(2);
  request.different_models = true;
  EXPECT_THAT(uuids(std::get<Decision>(cluster.place(request))), ElementsAre("mixed-0", "mixed-1"));
  request.gpus.front().count = 3;
  EXPECT_THAT(reasons_for(cluster, request),
              ElementsAre("the machine lacks 3 free GPUs of different models"));
  Request claims;
  claims.gpus = {{2, {.models = {"T4"}}}, {1, {.models = {"A100"}}}};
  EXPECT_THAT(uuids(std::get<Decision>(cluster.place(claims))), ElementsAre("mixed-0", "mixed-1", "mixed-3"));
}

TEST(Cluster, SharesTheGpusOfAGroup) {
  Cluster cluster;
  cluster.set_node(node("a", Gpus{.count = 2}));
  cluster.set_node(node("b", Gpus{.count = 2}));
  auto request = gpus(1);
  request.group = "pod";
  request.milli_cpus = 20'000;
  const auto first = placed(cluster, "1", request);
  EXPECT_EQ(placed(cluster, "2", request), first);
  EXPECT_EQ(cluster.free("a").gpus, 1);
  EXPECT_EQ(cluster.free("a").milli_cpus, 24'000);
  placed(cluster, "3", request);
  EXPECT_THAT(reasons_for(cluster, request),
              ElementsAre("the GPUs of its group are on a, where 20 CPUs are wanted and 4 of 64 are free"));
  cluster.release("1");
  cluster.release("2");
  EXPECT_EQ(cluster.free("a").gpus, 1);
  cluster.release("3");
  EXPECT_EQ(cluster.free("a").gpus, 2);
}

TEST(Cluster, PinsCpusToTheNumaNodesOfTheGpus) {
  Cluster cluster;
  auto machine = node("a", Gpus{.count = 4});
  machine.milli_cpus = 8000;
  machine.numa = {{0, {0, 1, 2, 3}}, {1, {4, 5, 6, 7}}};
  for (int i = 0; i < 4; ++i) machine.inventory.devices[static_cast<std::size_t>(i)].numa_node = i / 2;
  cluster.set_node(machine);
  auto request = gpus(1);
  request.milli_cpus = 3000;
  EXPECT_THAT(placed(cluster, "1", request).cpus, ElementsAre(0, 1, 2, 3));
  const auto second = placed(cluster, "2", request);
  EXPECT_THAT(uuids(second), ElementsAre("a-2"));
  EXPECT_THAT(second.cpus, ElementsAre(4, 5, 6, 7));
  request.milli_cpus = 2000;
  EXPECT_TRUE(placed(cluster, "3", request).cpus.empty());
  cluster.release("3");
  request.cpu_affinity = Preference::kRequire;
  EXPECT_THAT(reasons_for(cluster, request), ElementsAre("the machine lacks 2 CPUs near free GPUs"));
}

/// Eight GPUs, two to each second of eight NUMA nodes with 32 CPUs, as in a DGX A100.
Node half_without_gpus() {
  auto machine = node("a", Gpus{.count = 8});
  machine.milli_cpus = 256'000;
  machine.memory_bytes = 1024 * kGiB;
  for (int id = 0; id < 8; ++id) {
    machine.numa.push_back({id, std::vector<int>(32)});
    std::iota(machine.numa.back().cpus.begin(), machine.numa.back().cpus.end(), 32 * id);
  }
  for (std::size_t i = 0; i < 8; ++i)
    machine.inventory.devices[i].numa_node = std::array{3, 3, 1, 1, 7, 7, 5, 5}.at(i);
  return machine;
}

TEST(Cluster, NumaNodesWithoutGpusAreLeftToTheNearest) {
  Cluster cluster;
  cluster.set_node(half_without_gpus());
  auto request = gpus(1);
  request.milli_cpus = 32'000;
  std::multiset<std::vector<int>> numa_of;
  for (int i = 0; i < 8; ++i) {
    const auto decision = placed(cluster, std::to_string(i), request);
    const auto near =
        *half_without_gpus().inventory.devices.at(decision.gpus.at(0).uuid.back() - '0').numa_node;
    std::set<int> numa;
    for (const auto cpu : decision.cpus) numa.insert(cpu / 32);
    EXPECT_TRUE(numa.contains(near)) << i;
    numa_of.emplace(numa.begin(), numa.end());
  }
  EXPECT_THAT(numa_of, ElementsAre(ElementsAre(0, 1), ElementsAre(1), ElementsAre(2, 3), ElementsAre(3),
                                   ElementsAre(4, 5), ElementsAre(5), ElementsAre(6, 7), ElementsAre(7)));
}

TEST(Cluster, CpusNearAreEnoughWhereTheyAre) {
  Cluster cluster;
  cluster.set_node(half_without_gpus());
  auto request = gpus(1);
  request.milli_cpus = 16'000;
  for (int i = 0; i < 8; ++i) EXPECT_EQ(placed(cluster, std::to_string(i), request).cpus.size(), 32u) << i;
}

TEST(Cluster, WhatWouldBePinnedToAllFloats) {
  Cluster cluster;
  auto machine = node("a", Gpus{.count = 2});
  machine.milli_cpus = 8000;
  machine.numa = {{0, {0, 1, 2, 3}}, {1, {4, 5, 6, 7}}};
  for (auto& device : machine.inventory.devices) device.numa_node = 0;
  cluster.set_node(machine);
  auto request = gpus(1);
  request.milli_cpus = 4000;
  EXPECT_EQ(placed(cluster, "1", request).cpus.size(), 4u);
  EXPECT_TRUE(placed(cluster, "2", request).cpus.empty());
}

TEST(Cluster, RefusesWhatIsNotFree) {
  Cluster cluster;
  cluster.set_node(node("a", Gpus{.count = 2}));
  const auto decision = placed(cluster, "1", gpus(1));
  EXPECT_EQ(cluster.allocate("1", gpus(1), decision).error().kind, ErrorKind::kConflict);
  EXPECT_EQ(cluster.allocate("2", gpus(1), decision).error().kind, ErrorKind::kConflict);
  EXPECT_EQ(cluster.allocate("2", cpu_only(65'000), {.node = "a"}).error().kind, ErrorKind::kConflict);
  EXPECT_EQ(cluster.remove_node("a").error().kind, ErrorKind::kConflict);
  EXPECT_EQ(cluster.free("a").gpus, 1);
}

TEST(Cluster, RestoresWhatTheJournalSays) {
  Cluster cluster;
  auto request = gpus(2);
  request.milli_cpus = 40'000;
  const Decision decision{"a", {{"a-0", 1000, 16 * kGiB}, {"a-1", 1000, 16 * kGiB}}, {}, {}};
  cluster.restore("1", request, decision);  // its node comes later
  auto shrunk = node("a", Gpus{.count = 1});
  shrunk.milli_cpus = 8000;
  cluster.set_node(shrunk);
  EXPECT_EQ(cluster.free("a").gpus, 0);
  EXPECT_EQ(cluster.free("a").milli_cpus, 0);
  cluster.set_node(node("a", Gpus{.count = 3}));
  EXPECT_EQ(cluster.free("a").gpus, 1);
  EXPECT_EQ(cluster.free("a").milli_cpus, 24'000);
  cluster.release("1");
  EXPECT_EQ(cluster.free("a").gpus, 3);
}

TEST(Cluster, SaysOfOneMachineAllThatIsShort) {
  Cluster cluster;
  auto machine = node("a", Gpus{.count = 2});
  machine.milli_cpus = 8000;
  machine.memory_bytes = 16 * kGiB;
  cluster.set_node(machine);
  auto request = gpus(1);
  request.milli_cpus = 7500;
  request.memory_bytes = 16 * kGiB;
  placed(cluster, "1", request);
  request.gpus.front().count = 2;
  request.milli_cpus = 1000;
  request.memory_bytes = kGiB;
  EXPECT_THAT(reasons_for(cluster, request),
              ElementsAre("2 GPUs are wanted and 1 of 2 is free", "1 CPUs are wanted and 0.5 of 8 are free",
                          "1 GiB of memory are wanted and 0 B of 16 GiB are free"));
}

TEST(Cluster, SaysNothingOfWhatComesFreeWithTheGpusThatAreShort) {
  Cluster cluster;
  auto machine = node("a", Gpus{.count = 2});
  machine.milli_cpus = 8000;
  machine.memory_bytes = 16 * kGiB;
  cluster.set_node(machine);
  auto request = gpus(1);
  request.milli_cpus = 4000;
  request.memory_bytes = 8 * kGiB;
  placed(cluster, "1", request);
  request.gpus.front().count = 2;
  request.milli_cpus = 8000;
  request.memory_bytes = 16 * kGiB;
  EXPECT_THAT(reasons_for(cluster, request), ElementsAre("2 GPUs are wanted and 1 of 2 is free"));
  placed(cluster, "2", cpu_only(1000));
  EXPECT_THAT(reasons_for(cluster, request),
              ElementsAre("2 GPUs are wanted and 1 of 2 is free", "8 CPUs are wanted and 3 of 8 are free"));
}

TEST(Cluster, CountsReasonsOverNodes) {
  Cluster cluster;
  cluster.set_node(node("v", Gpus{.count = 4, .model = "V100"}));
  cluster.set_node(node("w", Gpus{.count = 4, .model = "V100"}));
  auto crossed = node("x", Gpus{.count = 2, .model = "A100"});
  crossed.inventory.links[0][1].pcie = crossed.inventory.links[1][0].pcie = gpu::PcieLevel::kAcross;
  cluster.set_node(crossed);
  auto cordoned = node("y", Gpus{.count = 4, .model = "A100", .nvlinks = 4});
  cordoned.cordoned = "maintenance";
  cluster.set_node(cordoned);
  auto request = gpus(2);
  request.gpus.front().filter.models = {"A100"};
  request.interconnect.min_nvlinks = 1;
  EXPECT_THAT(
      reasons_for(cluster, request),
      ElementsAre(
          "4 nodes: 2 have no model A100, 1 lacks 2 free GPUs joined by NVLink (has 2 across sockets), "
          "1 is cordoned (maintenance)"));
}

TEST(Cluster, KeepsOffNodesWhereItMayNotRun) {
  auto cluster = cluster_of(4, 2);
  const Eligibility rules{{"had untolerated taint(s)", "had no room for its volume"},
                          {{"n0", 0}, {"n1", 1}, {"n3", 0}, {"elsewhere", 1}}};
  auto request = gpus(2);
  request.eligibility = std::make_shared<const Eligibility>(rules);
  EXPECT_EQ(placed(cluster, "1", request).node, "n2");
  EXPECT_FALSE(cluster.try_place_on("n0", request));
  EXPECT_THAT(reasons_for(cluster, request),
              ElementsAre("4 nodes: 2 had untolerated taint(s), 1 had no room for its volume, "
                          "1 lacks 2 free GPUs (has 0)"));
  // What it may do where is a part of the request: nothing of another one is remembered for it.
  request.eligibility = std::make_shared<const Eligibility>(Eligibility{{"full"}, {{"n0", 0}}});
  EXPECT_EQ(placed(cluster, "2", request).node, "n1");
}

TEST(Cluster, SaysWhatThereIsInPlaceOfWhatIsAskedFor) {
  Cluster cluster;
  cluster.set_node(node("a", Gpus{.count = 8, .model = "NVIDIA A100-SXM4-40GB", .memory = 40'536ULL << 20}));
  auto request = gpus(1);
  request.gpus.front().filter.models = {"H100"};
  EXPECT_EQ(cluster.possible(request).error().message,
            "1 × H100 is asked for, and this machine has 8 × NVIDIA A100-SXM4-40GB with 39.6 GiB");
  request.gpus.front().filter = {.min_memory_bytes = 80 * kGiB};
  EXPECT_EQ(cluster.possible(request).error().message,
            "1 GPU with 80 GiB is asked for, and this machine has 8 × NVIDIA A100-SXM4-40GB with 39.6 GiB");
}

TEST(Cluster, MemoryIsWhatACardIsSoldBy) {
  Cluster cluster;
  cluster.set_node(node("a", Gpus{.count = 8, .model = "A100", .memory = 40'536ULL << 20}));
  auto request = gpus(1);
  request.gpus.front().filter.min_memory_bytes = 40 * kGiB;
  EXPECT_TRUE(cluster.possible(request));
  EXPECT_EQ(placed(cluster, "1", request).node, "a");
  request.gpus.front().filter.min_memory_bytes = 40 * kGiB + 1;
  EXPECT_FALSE(cluster.possible(request));
  request.gpus.front().filter = {};
  request.share.memory_bytes = 40 * kGiB;
  EXPECT_FALSE(cluster.possible(request)) << "a part of what there is is no more than that";
}

TEST(Filter, KnowsTheSizesThatCardsAreSoldBy) {
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> cards = {
      {40'536, 40},   {81'559, 80}, {16'160, 16}, {15'109, 16}, {11'441, 12}, {11'019, 11}, {22'731, 24},
      {23'034, 24},   {45'634, 48}, {46'068, 48}, {24'564, 24}, {95'830, 94}, {97'871, 96}, {143'771, 141},
      {183'359, 180}, {4'864, 5},   {9'856, 10},  {19'968, 20}, {40'192, 40}, {8'192, 8}};
  for (const auto& [mib, gib] : cards) EXPECT_EQ(sold_memory(mib << 20), gib * kGiB) << mib;
  EXPECT_EQ(sold_memory(0), 0u);
  EXPECT_EQ(sold_memory(28 * kGiB), 28 * kGiB) << "no card is sold by it, and it is no 32";
  EXPECT_EQ(sold_memory(1000 * kGiB), 1000 * kGiB);
}

RC_GTEST_PROP(FilterProperty, TheSizeThatACardIsSoldByGrowsWithItsMemory, ()) {
  const auto less = *rc::gen::inRange<std::uint64_t>(0, 400 * kGiB);
  const auto more = *rc::gen::inRange<std::uint64_t>(less, 400 * kGiB + 1);
  RC_ASSERT(sold_memory(less) >= less);
  RC_ASSERT(sold_memory(less) <= sold_memory(more));
}

TEST(Cluster, SaysWhatCanNeverBe) {
  Cluster none;
  none.set_node(node("a", Gpus{}));
  EXPECT_EQ(none.possible(gpus(1)).error().message, "1 GPU is asked for, but this machine has none");
  Cluster cluster;
  cluster.set_node(node("a", Gpus{.count = 4, .model = "A100"}));
  cluster.set_node(node("b", Gpus{.count = 8, .model = "V100"}));
  placed(cluster, "1", gpus(8));
  EXPECT_TRUE(cluster.possible(gpus(8)));
  EXPECT_EQ(cluster.possible(gpus(9)).error().message, "9 GPUs are asked for, but the largest node has 8");
  auto request = gpus(8);
  request.gpus.front().filter.models = {"A100"};
  const auto error = cluster.possible(request).error();
  EXPECT_EQ(error.message, "8 × A100 are asked for, and the largest node has 4");
  EXPECT_EQ(error.path, "/gpus/0/count");
  EXPECT_EQ(error.kind, ErrorKind::kInvalid);
  EXPECT_EQ(cluster.possible(cpu_only(65'000)).error().path, "/milli_cpus");
}

}  // namespace
}  // namespace drover::placement

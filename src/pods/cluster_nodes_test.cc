#include "pods/cluster_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/gpu_topology.h"

namespace drover::pods {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::SizeIs;

json node(int gpus) {
  return {
      {"metadata", {{"name", "n1"}, {"labels", {{"kubernetes.io/hostname", "n1.lan"}, {"rack", "r7"}}}}},
      {"spec", json::object()},
      {"status",
       {{"allocatable",
         {{"cpu", "3500m"}, {"memory", "2Gi"}, {"pods", "110"}, {"nvidia.com/gpu", std::to_string(gpus)}}}}}};
}

gpu::Inventory two_gpus() {
  gpu::Inventory inventory;
  for (int i = 0; i < 2; ++i)
    inventory.devices.push_back({.uuid = "GPU-" + std::to_string(i), .index = i, .model = "Tesla V100"});
  inventory.links.assign(2, std::vector<gpu::Link>(2));
  inventory.links[0][1] = inventory.links[1][0] = {2, gpu::PcieLevel::kAcross};
  return inventory;
}

TEST(ClusterNodes, HaveWhatTheyOfferAndTheirLabels) {
  const auto made = placement_node(node(2), "nvidia.com/gpu").value();
  EXPECT_EQ(made.name, "n1");
  EXPECT_EQ(made.milli_cpus, 3500);
  EXPECT_EQ(made.memory_bytes, 2ULL << 30);
  EXPECT_THAT(made.inventory.devices, SizeIs(2)) << "which nobody describes";
  EXPECT_THAT(made.attributes.at("rack"), ElementsAre("r7"));
  EXPECT_THAT(made.attributes.at("hostname"), ElementsAre("n1.lan"));
}

TEST(ClusterNodes, HaveTheGpusThatTheirAgentDescribes) {
  auto described = node(1);
  described["metadata"]["annotations"][kube::kTopologyAnnotation] = kube::write_topology(two_gpus());
  described["spec"]["unschedulable"] = true;
  const auto made = placement_node(described, "nvidia.com/gpu").value();
  ASSERT_THAT(made.inventory.devices, SizeIs(2));
  EXPECT_EQ(made.inventory.devices[1].uuid, "GPU-1");
  EXPECT_EQ(made.inventory.links[0][1].nvlinks, 2);
  EXPECT_EQ(gpu::why_withheld(made.inventory.devices[0]), "");
  EXPECT_NE(made.inventory.devices[1].cordoned, "") << "its kubelet gives out one";
  EXPECT_NE(made.cordoned, "");
}

TEST(ClusterNodes, AGpuThatSomebodyHasIsWithheldAndNotUnhealthy) {
  auto described = node(0);
  const auto withheld = [&](std::string why) {
    auto gpus = two_gpus();
    gpus.devices[0].unhealthy = std::move(why);
    described["metadata"]["annotations"][kube::kTopologyAnnotation] = kube::write_topology(gpus);
    return placement_node(described, "nvidia.com/gpu").value().inventory.devices[0];
  };
  for (const auto& why :
       {std::string(kube::kInUseByClaim), std::string(kube::kUsageUnknown), std::string("in use as x/gpu")}) {
    EXPECT_EQ(withheld(why).cordoned, why);
    EXPECT_EQ(withheld(why).unhealthy, "");
  }
  EXPECT_EQ(withheld("XID 79").unhealthy, "XID 79");
  EXPECT_EQ(withheld("").unhealthy, "") << "which its kubelet does not give out";
}

TEST(ClusterNodes, PodsTakeWhatTheyRequest) {
  json pod = {{"metadata", {{"name", "p"}, {"namespace", "a"}}},
              {"spec",
               {{"nodeName", "n1"},
                {"containers",
                 json::array({{{"name", "c"},
                               {"resources",
                                {{"requests", {{"cpu", "250m"}, {"memory", "1Gi"}, {"nvidia.com/gpu", "2"}}},
                                 {"limits", {{"nvidia.com/gpu", "2"}}}}}}})}}},
              {"status", {{"phase", "Running"}}}};
  const PodUse two{"n1", {.gpus = 2, .milli_cpus = 250, .memory_bytes = 1ULL << 30}};
  EXPECT_EQ(read_use(pod, "nvidia.com/gpu").value(), two);
  pod["status"]["phase"] = "Succeeded";
  EXPECT_EQ(read_use(pod, "nvidia.com/gpu").value(), PodUse{});
  pod["spec"]["containers"] = "none";
  EXPECT_EQ(read_use(pod, "nvidia.com/gpu").value(), PodUse{}) << "of what has ended nothing is read";
  pod["status"]["phase"] = "Running";
  EXPECT_FALSE(read_use(pod, "nvidia.com/gpu"));
}

TEST(ClusterNodes, WhatIsNoNodeIsNone) {
  EXPECT_FALSE(placement_node(json::object(), "nvidia.com/gpu"));
}

}  // namespace
}  // namespace drover::pods

#include "sim/topology.h"

#include <gtest/gtest.h>

#include "sim/testing/shipped.h"

namespace drover::sim {
namespace {

nvmlGpuTopologyLevel_t level(const Profile& profile, std::size_t a, std::size_t b) {
  return common_ancestor(profile.gpus[a], profile.gpus[b]);
}

TEST(CommonAncestor, FollowsTheBridges) {
  EXPECT_EQ(level(shipped("k80"), 0, 1), NVML_TOPOLOGY_INTERNAL);
  const auto dgx1 = shipped("dgx1-v100");
  EXPECT_EQ(level(dgx1, 0, 1), NVML_TOPOLOGY_SINGLE);
  EXPECT_EQ(level(dgx1, 0, 2), NVML_TOPOLOGY_HOSTBRIDGE);
  EXPECT_EQ(level(dgx1, 0, 4), NVML_TOPOLOGY_SYSTEM);
  EXPECT_EQ(level(shipped("pcie4"), 2, 3), NVML_TOPOLOGY_MULTIPLE);
  const auto mixed = shipped("mixed");
  EXPECT_EQ(level(mixed, 0, 1), NVML_TOPOLOGY_SINGLE);
  EXPECT_EQ(level(mixed, 2, 3), NVML_TOPOLOGY_NODE);
}

TEST(CommonAncestor, IsTheSameBothWays) {
  const auto profile = shipped("dgx2");
  for (std::size_t i = 0; i < profile.gpus.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_EQ(level(profile, i, j), level(profile, j, i));
}

TEST(LinkEnds, LeadToThePeerAndBack) {
  const auto profile = shipped("dgx1-v100");
  for (std::size_t i = 0; i < profile.gpus.size(); ++i) {
    const auto ends = link_ends(profile, i);
    EXPECT_EQ(ends.size(), 6U);
    for (std::size_t link = 0; link < ends.size(); ++link) {
      std::size_t peer = 0;
      while (profile.gpus[peer].pci != ends[link].pci) ++peer;
      const auto back = link_ends(profile, peer).at(ends[link].remote_link);
      EXPECT_EQ(back.pci, profile.gpus[i].pci);
      EXPECT_EQ(back.remote_link, link);
    }
  }
}

TEST(LinkEnds, OfASwitchedMachineAreItsSwitches) {
  const auto ends = link_ends(shipped("dgx-a100"), 3);
  EXPECT_EQ(ends.size(), 12U);
  for (const auto& end : ends) EXPECT_EQ(end.type, NVML_NVLINK_DEVICE_TYPE_SWITCH);
}

TEST(LinkEnds, OnPowerReachTheCpu) {
  const auto ends = link_ends(shipped("minsky"), 0);
  ASSERT_EQ(ends.size(), 4U);
  EXPECT_EQ(ends[1].type, NVML_NVLINK_DEVICE_TYPE_GPU);
  EXPECT_EQ(ends[2].type, NVML_NVLINK_DEVICE_TYPE_IBMNPU);
}

TEST(LinkEnds, AreNoneWithoutNvlink) {
  EXPECT_TRUE(link_ends(shipped("pcie4"), 0).empty());
}

TEST(CpusOf, AreThoseOfTheNumaNode) {
  const auto profile = shipped("k40m");
  EXPECT_EQ(cpus_of(profile, profile.gpus[0]), *parse_cpu_list("10-19,30-39"));
}

}  // namespace
}  // namespace drover::sim

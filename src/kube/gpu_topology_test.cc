#include "kube/gpu_topology.h"

#include <gtest/gtest.h>

#include "placement/testing/clusters.h"

namespace drover::kube {
namespace {

TEST(GpuTopology, IsReadAsItWasWritten) {
  auto inventory = placement::testing::node("a", {.count = 4, .nvlinks = 2}).inventory;
  inventory.devices[1].unhealthy = "too hot";
  inventory.devices[2].numa_node = 1;
  inventory.devices[2].ecc = false;
  inventory.devices[3].compute_capability = gpu::ComputeCapability{9, 0};
  inventory.links[0][1] = inventory.links[1][0] = {4, gpu::PcieLevel::kAcross};
  const auto read = read_topology(write_topology(inventory));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, inventory);
  EXPECT_EQ(read_topology(write_topology({})), Result<gpu::Inventory>(gpu::Inventory{}));
}

TEST(GpuTopology, RefusesWhatNobodyHasWritten) {
  for (const char* text :
       {"", "[]", R"({"gpus": [{"uuid": ""}], "links": [[]]})",
        R"({"gpus": [{"uuid": "a"}, {"uuid": "a"}], "links": [[], [[0, 1]]]})",
        R"({"gpus": [{"uuid": "a"}]})", R"({"gpus": [{"uuid": "a"}], "links": [[[0, 1]]]})",
        R"({"gpus": [{"uuid": "a"}, {"uuid": "b"}], "links": [[], [[0, 99]]]})",
        R"({"gpus": [{"uuid": "a"}, {"uuid": "b"}], "links": [[], [[-1, 1]]]})"})
    EXPECT_FALSE(read_topology(text)) << text;
}

}  // namespace
}  // namespace drover::kube

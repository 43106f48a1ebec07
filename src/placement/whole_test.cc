#include "placement/whole.h"

#include <gtest/gtest.h>

namespace drover::placement::whole {
namespace {

Node node_with_links(const std::vector<std::vector<int>>& nvlinks) {
  Node node;
  node.milli_cpus = 8000;
  node.memory_bytes = 1ULL << 34;
  for (std::size_t i = 0; i < nvlinks.size(); ++i) {
    gpu::Device device;
    device.uuid = "GPU-" + std::to_string(i);
    device.index = static_cast<int>(i);
    node.inventory.devices.push_back(device);
    std::vector<gpu::Link> row;
    for (const int count : nvlinks[i]) row.push_back({count, gpu::PcieLevel::kAcross});
    node.inventory.links.push_back(row);
  }
  return node;
}

std::vector<std::string> chosen(const Node& node, const Usage& usage, int gpus) {
  const auto answer = place(node, usage, {gpus, 1000, 1 << 20});
  return std::get<Decision>(answer).gpus;
}

TEST(Placement, TakesThePairWithMostLinks) {
  const auto node = node_with_links({{0, 1, 0, 0}, {1, 0, 0, 0}, {0, 0, 0, 2}, {0, 0, 2, 0}});
  EXPECT_EQ(chosen(node, {}, 2), (std::vector<std::string>{"GPU-2", "GPU-3"}));
  EXPECT_EQ(chosen(node, {{"GPU-2"}, 0, 0}, 2), (std::vector<std::string>{"GPU-0", "GPU-1"}));
}

TEST(Placement, PrefersTheNearerPairOverPcie) {
  auto node = node_with_links({{0, 0, 0}, {0, 0, 0}, {0, 0, 0}});
  node.inventory.links[0][2].pcie = node.inventory.links[2][0].pcie = gpu::PcieLevel::kSwitch;
  EXPECT_EQ(chosen(node, {}, 2), (std::vector<std::string>{"GPU-0", "GPU-2"}));
}

TEST(Placement, NamesEveryDimensionThatIsShort) {
  const auto node = node_with_links({{0, 0}, {0, 0}});
  const Usage usage{{"GPU-0"}, 7500, 1ULL << 34};
  const auto reasons = std::get<Reasons>(place(node, usage, {2, 1000, 1 << 30})).list;
  EXPECT_EQ(reasons, (std::vector<std::string>{"2 GPUs are wanted and 1 of 2 is free",
                                               "1 CPUs are wanted and 0.5 of 8 are free",
                                               "1 GiB of memory are wanted and 0 B of 16 GiB are free"}));
}

TEST(Placement, SaysWhatCanNeverBe) {
  const auto none = node_with_links({});
  EXPECT_EQ(possible(none, {1, 0, 0}).error().message, "1 GPU is asked for, but this machine has none");
  const auto two = node_with_links({{0, 0}, {0, 0}});
  EXPECT_EQ(possible(two, {3, 0, 0}).error().hint, "ask for at most 2");
  EXPECT_EQ(possible(two, {0, 9000, 0}).error().path, "/cpus");
  EXPECT_TRUE(possible(two, {2, 8000, 1ULL << 34}));
}

}  // namespace
}  // namespace drover::placement::whole

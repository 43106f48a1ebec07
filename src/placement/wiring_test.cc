#include "placement/wiring.h"

#include <gtest/gtest.h>

#include "placement/device_choice.h"

namespace drover::placement {
namespace {

using gpu::PcieLevel;

TEST(WiringTest, KeepsLinksAndCountsNumaNodesInOrder) {
  const gpu::Link self{0, PcieLevel::kSameDevice};
  const gpu::Link joined{2, PcieLevel::kSwitch};
  const gpu::Link apart{0, PcieLevel::kAcross};
  const Wiring wiring({{self, joined, apart}, {joined, self, apart}, {apart, apart, self}}, {8, 8, 0});
  EXPECT_EQ(wiring.devices(), 3);
  EXPECT_EQ(wiring.link(1, 0), joined);
  EXPECT_EQ(wiring.link(2, 1), apart);
  EXPECT_EQ(wiring.numa_nodes(), (std::vector<int>{0, 8}));
  EXPECT_EQ(numa_of(wiring, 0b011), 0b10);
  EXPECT_EQ(numa_of(wiring, 0b110), 0b11);
  EXPECT_EQ(numa_of(wiring, 0), 0);
}

TEST(WiringTest, MachineWithoutDevicesIsAMachine) {
  const Wiring wiring({}, {});
  EXPECT_EQ(wiring.devices(), 0);
  EXPECT_TRUE(wiring.numa_nodes().empty());
  EXPECT_EQ(choose(wiring, {}), DeviceMask{0});
}

TEST(WiringTest, NumaNodesWithoutABitCountAsUnknown) {
  const std::vector<std::vector<gpu::Link>> links(10, std::vector<gpu::Link>(10));
  const Wiring wiring(links, {0, 1, 2, 3, 4, 5, 6, 7, 8, std::nullopt});
  EXPECT_EQ(wiring.numa_nodes().size(), 9U);
  EXPECT_EQ(numa_of(wiring, 0b0010000000), 0x80);
  EXPECT_EQ(numa_of(wiring, 0b1100000000), 0);
}

}  // namespace
}  // namespace drover::placement

#include "gpu/recognise.h"

#include <gtest/gtest.h>

namespace drover::gpu {
namespace {

/// GPUs "GPU-0", "GPU-1" … at bus 1, 2 …, all joined by three NVLinks.
Inventory machine(int count) {
  Inventory inventory;
  for (int i = 0; i < count; ++i) {
    Device device;
    device.uuid = "GPU-" + std::to_string(i);
    device.index = i;
    device.minor = i;
    device.model = "Tesla V100";
    device.pci = PciAddress{0, static_cast<std::uint32_t>(i + 1), 0, 0};
    inventory.devices.push_back(device);
  }
  const auto size = static_cast<std::size_t>(count);
  inventory.links.assign(size, std::vector<Link>(size, Link{3, PcieLevel::kSwitch}));
  return inventory;
}

/// What discovery makes of a GPU that tells nothing.
void lose(Inventory& inventory, std::size_t position, const std::string& name) {
  Device device;
  device.uuid = name;
  device.index = static_cast<int>(position);
  device.unhealthy = "GPU is lost";
  device.problems.push_back({ErrorKind::kUnavailable, "nvmlDeviceGetUUID: GPU is lost", "", ""});
  if (name.starts_with("PCI-")) device.pci = inventory.devices[position].pci;
  inventory.devices[position] = device;
  for (std::size_t other = 0; other < inventory.links.size(); ++other)
    inventory.links[position][other] = inventory.links[other][position] = Link{};
}

TEST(RecogniseTest, LostGpuKeepsItsNameAndItsLinks) {
  for (const auto* name : {"INDEX-1", "PCI-0000:02:00.0"}) {
    const auto before = machine(4);
    auto now = before;
    lose(now, 1, name);
    const auto problems = now.devices[1].problems;
    const auto recognised = recognise(now, before);
    EXPECT_EQ(recognised.devices[1].uuid, "GPU-1");
    EXPECT_EQ(recognised.devices[1].model, "Tesla V100");
    EXPECT_EQ(recognised.devices[1].unhealthy, "GPU is lost");
    EXPECT_EQ(recognised.devices[1].problems, problems);
    EXPECT_EQ(recognised.links, before.links);
    // Still lost at the next look, and healthy again after a reset.
    EXPECT_EQ(recognise(now, recognised), recognised);
    EXPECT_EQ(recognise(before, recognised), before);
  }
}

TEST(RecogniseTest, GpuThatTellsItsNameIsNeverTakenForAnother) {
  const auto before = machine(3);
  auto now = before;
  std::swap(now.devices[0].uuid, now.devices[1].uuid);  // another card was put in while nobody looked
  lose(now, 2, "INDEX-2");
  now.devices[0].uuid = "GPU-2";
  EXPECT_EQ(recognise(now, before).devices[2].uuid, "INDEX-2");
}

TEST(RecogniseTest, WithoutAPlaceNobodyIsRecognised) {
  auto now = machine(2);
  lose(now, 1, "INDEX-1");
  EXPECT_EQ(recognise(now, machine(4)), now);
  EXPECT_EQ(recognise(now, {}), now);
  EXPECT_EQ(recognise({}, machine(4)), Inventory{});
}

}  // namespace
}  // namespace drover::gpu

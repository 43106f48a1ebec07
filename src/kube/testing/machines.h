#pragma once

// Made-up machines for tests.

#include <fmt/format.h>

#include <random>
#include <string>

#include "gpu/device.h"

namespace drover::kube::testing {

inline std::string uuid(int index) {
  return fmt::format("GPU-{:08d}", index);
}

/// GPUs of one model, odd ones on NUMA node 1, all joined by 2 NVLinks with their neighbour and otherwise
/// over PCIe.
inline gpu::Inventory machine(int gpus) {
  gpu::Inventory inventory;
  const auto count = static_cast<std::size_t>(gpus);
  inventory.links.assign(count, std::vector<gpu::Link>(count, {0, gpu::PcieLevel::kSameNuma}));
  for (int i = 0; i < gpus; ++i) {
    gpu::Device device;
    device.uuid = uuid(i);
    device.index = i;
    device.minor = i;
    device.model = "Model X";
    device.memory_bytes = 16ULL << 30;
    device.numa_node = i % 2;
    inventory.devices.push_back(std::move(device));
    const auto at = static_cast<std::size_t>(i);
    inventory.links[at][at] = {0, gpu::PcieLevel::kSameDevice};
    if (i % 2 == 1) inventory.links[at][at - 1].nvlinks = inventory.links[at - 1][at].nvlinks = 2;
  }
  return inventory;
}

/// Any wiring at all.
inline gpu::Inventory random_machine(int gpus, std::mt19937& random) {
  auto inventory = machine(gpus);
  for (std::size_t i = 0; i < inventory.devices.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      inventory.links[i][j] = inventory.links[j][i] = {static_cast<int>(random() % 4),
                                                       static_cast<gpu::PcieLevel>(1 + random() % 6)};
  return inventory;
}

}  // namespace drover::kube::testing

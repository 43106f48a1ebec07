#include "kube/known_gpus.h"

#include <algorithm>
#include <utility>

namespace drover::kube {

gpu::Inventory keep_known(const gpu::Inventory& before, gpu::Inventory now) {
  const auto position = [](const gpu::Inventory& inventory, const std::string& uuid) {
    return std::ranges::find(inventory.devices, uuid, &gpu::Device::uuid) - inventory.devices.begin();
  };
  const auto is_listed = [&](const gpu::Inventory& inventory, const gpu::Device& device) {
    return position(inventory, device.uuid) != std::ssize(inventory.devices);
  };
  if (now.devices.size() >= before.devices.size() ||
      !std::ranges::all_of(now.devices, [&](const auto& device) { return is_listed(before, device); }))
    return now;
  auto all = std::move(now);
  const auto listed = std::exchange(all.devices, before.devices);
  all.links = before.links;
  for (auto& device : all.devices) {
    const auto found = std::ranges::find(listed, device.uuid, &gpu::Device::uuid);
    const auto index = device.index;
    if (found != listed.end()) {
      device = *found;
      device.index = index;
    } else if (device.unhealthy.empty()) {
      device.unhealthy = "the driver no longer lists it";
    }
  }
  return all;
}

}  // namespace drover::kube

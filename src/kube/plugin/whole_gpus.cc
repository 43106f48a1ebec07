#include "kube/plugin/whole_gpus.h"

#include <algorithm>

#include "kube/plugin/mig_devices.h"

namespace drover::kube {
namespace {

const OfferedDevice* find_whole(const std::vector<OfferedResource>& offers, const std::string& uuid) {
  for (const auto& resource : offers) {
    if (resource.shared) continue;
    const auto found = std::ranges::find(resource.devices, uuid, &OfferedDevice::id);
    if (found != resource.devices.end()) return &*found;
  }
  return nullptr;
}

}  // namespace

gpu::Inventory whole_gpus(const gpu::Inventory& inventory, const std::vector<OfferedResource>& offers) {
  auto whole = inventory;
  whole.devices.clear();
  std::vector<std::size_t> origins;
  for (std::size_t i = 0; i < inventory.devices.size(); ++i) {
    const auto& device = inventory.devices[i];
    const auto* offered = find_whole(offers, device.uuid);
    if (offered == nullptr || device.mig == gpu::MigMode::kEnabled) continue;
    whole.devices.push_back(device);
    whole.devices.back().unhealthy = offered->trouble;
    origins.push_back(i);
  }
  whole.links = links_between(inventory, origins);
  return whole;
}

}  // namespace drover::kube

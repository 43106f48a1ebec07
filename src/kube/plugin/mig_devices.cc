#include "kube/plugin/mig_devices.h"

#include <algorithm>
#include <utility>

#include "gpu/discovery.h"

namespace drover::kube {
namespace {

constexpr const char* kGpuResource = "nvidia.com/gpu";
constexpr const char* kMigResource = "nvidia.com/mig-";

/// A MIG device, and the place of its GPU in the inventory.
struct Cut {
  std::size_t gpu = 0;
  gpu::MigInstanceFacts instance;
  gpu::MigProfile profile;
};

std::vector<Cut> cuts_of(const gpu::Inventory& inventory, const std::map<std::string, gpu::MigGpu>& mig,
                         const std::set<gpu::MigPart>& made) {
  std::vector<Cut> cuts;
  for (std::size_t i = 0; i < inventory.devices.size(); ++i) {
    const auto& uuid = inventory.devices[i].uuid;
    const auto found = mig.find(uuid);
    if (found == mig.end()) continue;
    for (const auto& instance : found->second.instances) {
      const auto* profile = found->second.profile(instance.profile_id);
      if (profile == nullptr || instance.uuid.empty() ||
          made.contains({uuid, instance.profile_id, instance.placement}))
        continue;
      cuts.push_back({i, instance, *profile});
    }
  }
  return cuts;
}

gpu::Device device_of(const gpu::Device& gpu, const Cut& cut) {
  auto device = gpu;
  device.uuid = cut.instance.uuid;
  device.model += " MIG " + cut.profile.name;
  device.memory_bytes = cut.profile.attributes.memory_bytes;
  if (device.unhealthy == gpu::kInMigMode) device.unhealthy.clear();
  return device;
}

/// "" when every GPU is cut, and all into parts of one kind.
std::string why_not_single(const gpu::Inventory& inventory, const std::vector<Cut>& cuts) {
  for (std::size_t i = 0; i < inventory.devices.size(); ++i) {
    if (inventory.devices[i].mig != gpu::MigMode::kEnabled)
      return "migStrategy 'single' needs every GPU in MIG mode, or none";
    if (std::ranges::find(cuts, i, &Cut::gpu) == cuts.end())
      return "migStrategy 'single' needs MIG devices on every GPU";
  }
  const bool alike = std::ranges::all_of(
      cuts, [&](const Cut& cut) { return cut.profile.name == cuts.front().profile.name; });
  return alike ? "" : "migStrategy 'single' needs MIG devices of one profile only";
}

}  // namespace

std::vector<std::vector<gpu::Link>> links_between(const gpu::Inventory& inventory,
                                                  const std::vector<std::size_t>& origins) {
  std::vector<std::vector<gpu::Link>> links;
  if (inventory.links.size() != inventory.devices.size()) return links;
  for (const auto from : origins) {
    auto& row = links.emplace_back();
    for (const auto to : origins) row.push_back(inventory.links[from][to]);
  }
  return links;
}

PluginDevices plugin_devices(const gpu::Inventory& inventory, const std::map<std::string, gpu::MigGpu>& mig,
                             const std::set<gpu::MigPart>& made, MigStrategy strategy) {
  PluginDevices found;
  found.inventory = inventory;
  if (strategy == MigStrategy::kNone || mig.empty()) return found;
  auto cuts = cuts_of(inventory, mig, made);
  if (strategy == MigStrategy::kSingle) found.trouble = why_not_single(inventory, cuts);
  if (!found.trouble.empty()) cuts.clear();

  std::vector<std::size_t> origins;  // of each device that is offered: its GPU
  found.inventory.devices.clear();
  for (std::size_t i = 0; i < inventory.devices.size(); ++i) {
    const auto& gpu = inventory.devices[i];
    if (gpu.mig != gpu::MigMode::kEnabled) {
      found.inventory.devices.push_back(gpu);
      origins.push_back(i);
      continue;
    }
    for (const auto& cut : cuts) {
      if (cut.gpu != i) continue;
      found.inventory.devices.push_back(device_of(gpu, cut));
      origins.push_back(i);
      const bool single = strategy == MigStrategy::kSingle;
      found.parts[cut.instance.uuid] = {single ? kGpuResource : kMigResource + cut.profile.name, gpu.uuid,
                                        cut.instance, cut.profile};
    }
  }
  found.inventory.links = links_between(inventory, origins);
  return found;
}

}  // namespace drover::kube

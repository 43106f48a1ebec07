#include "machine_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace drover {

std::map<std::string, gpu::MigGpu> discover_mig(const Hardware& hardware, const gpu::Inventory& inventory,
                                                const std::map<std::string, gpu::MigGpu>& before) {
  std::map<std::string, gpu::MigGpu> found;
  for (const auto& device : inventory.devices) {
    if (device.mig != gpu::MigMode::kEnabled) continue;
    auto discovered =
        with_nvml(hardware, [&](const gpu::Nvml& nvml) { return gpu::discover_mig(nvml, device.uuid); });
    if (discovered)
      found[device.uuid] = std::move(*discovered);
    else if (const auto known = before.find(device.uuid); known != before.end())
      found[device.uuid] = known->second;
  }
  return found;
}

Result<std::vector<gpu::DeviceNode>> mig_nodes_of(const Hardware& hardware, const gpu::Device& gpu,
                                                  const gpu::MigInstanceFacts& instance) {
  DROVER_TRY(auto nodes, hardware.nodes_of({gpu}));
  DROVER_TRY(auto capabilities,
             gpu::mig_device_nodes(hardware.mig_node_places(), gpu.minor.value_or(-1), instance));
  for (auto& node : capabilities) nodes.push_back(std::move(node));
  return nodes;
}

void leave_foreign(std::map<std::string, gpu::MigGpu>& mig, const std::set<gpu::MigPart>& ours) {
  for (auto& [uuid, gpu] : mig)
    std::erase_if(gpu.instances, [&](const gpu::MigInstanceFacts& instance) {
      return ours.contains({uuid, instance.profile_id, instance.placement});
    });
}

Result<bool> MachineParts::exists(const gpu::MigPart& part) {
  DROVER_TRY(const auto gpu,
             with_nvml(*hardware_, [&](const gpu::Nvml& nvml) { return gpu::discover_mig(nvml, part.gpu); }));
  return std::ranges::any_of(gpu.instances, [&](const gpu::MigInstanceFacts& instance) {
    return instance.profile_id == part.profile_id && instance.placement == part.placement;
  });
}

Result<container::MadePart> MachineParts::make(const gpu::MigPart& part) {
  const auto inventory = hardware_->discover();
  const auto gpu = std::ranges::find(inventory.devices, part.gpu, &gpu::Device::uuid);
  if (gpu == inventory.devices.end())
    return fail(ErrorKind::kNotFound, fmt::format("This machine has no GPU {} now", part.gpu));
  DROVER_TRY(const auto instance, with_nvml(*hardware_, [&](const gpu::Nvml& nvml) {
               return gpu::make_mig_instance(nvml, part);
             }));
  DROVER_TRY(auto nodes, mig_nodes_of(*hardware_, *gpu, instance));
  return container::MadePart{instance.uuid, std::move(nodes)};
}

Status MachineParts::destroy(const gpu::MigPart& part) {
  return with_nvml(*hardware_, [&](const gpu::Nvml& nvml) { return gpu::destroy_mig_instance(nvml, part); });
}

}  // namespace drover

#include "kube_node/mig.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "driver/cdi.h"
#include "gpu/device_files.h"

namespace drover {
namespace {

/// Calls `use(const Nvml&)`, unless there is none.
template <typename Use>
auto with_nvml(const Hardware& hardware, Use use) -> decltype(use(std::declval<const gpu::Nvml&>())) {
  const auto nvml = hardware.shared_nvml();
  if (!*nvml) return Failure(nvml->error());
  return use(**nvml);
}

}  // namespace

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

Result<cdi::Edits> KubeMig::find(const gpu::MigPart& part) {
  DROVER_TRY(const auto gpu,
             with_nvml(hardware_, [&](const gpu::Nvml& nvml) { return gpu::discover_mig(nvml, part.gpu); }));
  for (const auto& instance : gpu.instances)
    if (instance.profile_id == part.profile_id && instance.placement == part.placement)
      return edits_of(part, instance);
  return fail(ErrorKind::kNotFound, fmt::format("GPU {} has no such MIG instance now", part.gpu));
}

Result<cdi::Edits> KubeMig::make(const gpu::MigPart& part) {
  DROVER_TRY(const auto instance,
             with_nvml(hardware_, [&](const gpu::Nvml& nvml) { return gpu::make_mig_instance(nvml, part); }));
  return edits_of(part, instance);
}

Status KubeMig::destroy(const gpu::MigPart& part) {
  return with_nvml(hardware_, [&](const gpu::Nvml& nvml) { return gpu::destroy_mig_instance(nvml, part); });
}

Result<cdi::Edits> KubeMig::edits_of(const gpu::MigPart& part, const gpu::MigInstanceFacts& instance) const {
  const auto inventory = inventory_();
  const auto gpu = std::ranges::find(inventory.devices, part.gpu, &gpu::Device::uuid);
  if (gpu == inventory.devices.end())
    return fail(ErrorKind::kNotFound, fmt::format("this node has no GPU {} now", part.gpu));
  DROVER_TRY(const auto nodes, mig_nodes_of(hardware_, *gpu, instance));
  return driver::edits_of_nodes(nodes, hardware_.device_folder());
}

}  // namespace drover

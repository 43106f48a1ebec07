#include "kube_node/mig.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/cdi.h"

namespace drover {
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

#include "kube_node/offer.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace drover {
namespace {

/// As NVIDIA's driver has them; what it does not know is ours.
std::string taint_key(gpu::ReasonKind kind) {
  switch (kind) {
    case gpu::ReasonKind::kXid:
      return "gpu.nvidia.com/xid";
    case gpu::ReasonKind::kLost:
      return "gpu.nvidia.com/gpu-lost";
    case gpu::ReasonKind::kUnmonitored:
      return "gpu.nvidia.com/unmonitored";
    default:
      return fmt::format("gpu.nvidia.com/{}", to_string(kind));
  }
}

kube::dra::Trouble trouble_of(const gpu::Reason& reason) {
  return {taint_key(reason.kind), reason.number == 0 ? "" : std::to_string(reason.number),
          reason.takes_out ? kube::dra::Effect::kNoSchedule : kube::dra::Effect::kNone, reason.since,
          to_string(reason)};
}

}  // namespace

void add_health(const gpu::Device& device, const std::vector<gpu::Reason>& reasons, kube::dra::View& view) {
  const auto mig = view.mig.find(device.uuid);
  for (const auto& reason : reasons) {
    if (mig == view.mig.end() || reason.instance == gpu::MigInstance()) {
      view.troubles[device.uuid].push_back(trouble_of(reason));
      continue;
    }
    for (const auto& instance : mig->second.instances)
      if (!instance.uuid.empty() &&
          reason.instance.overlaps({instance.gpu_instance, instance.compute_instance}))
        view.troubles[instance.uuid].push_back(trouble_of(reason));
  }
}

void mark_unhealthy(const kube::dra::View& view, kube::PluginDevices& devices) {
  for (auto& device : devices.inventory.devices) {
    const auto part = devices.parts.find(device.uuid);
    if (part == devices.parts.end()) continue;
    for (const auto& uuid : {part->second.gpu, device.uuid})
      if (device.unhealthy.empty()) device.unhealthy = kube::dra::hindrance_of(view, uuid);
  }
}

void ClaimHindrances::add(const kube::Holders& holders, const MissingFiles& missing, TimePoint now,
                          kube::dra::View& view) {
  auto since = std::exchange(since_, {});
  const auto add = [&](const std::string& uuid, const char* name, std::string message) {
    const auto key = fmt::format("{}/{}", driver_, name);
    const auto known = since.find({uuid, key});
    const auto begin = known == since.end() ? now : known->second;
    since_[{uuid, key}] = begin;
    view.troubles[uuid].push_back({key, "", kube::dra::Effect::kNoSchedule, begin, std::move(message)});
  };
  for (const auto& [uuid, resources] : holders) add(uuid, "in-use", "in use as " + *resources.begin());
  for (const auto& [uuid, why] : missing) add(uuid, "no-device-files", why);
}

}  // namespace drover

#include "kube/plugin/allocation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kube/plugin/gpu_sets.h"

namespace drover::kube {
namespace {

constexpr const char* kVisibleDevices = "NVIDIA_VISIBLE_DEVICES";
// NVIDIA's container runtime reads a list of GPUs out of the names that are mounted here.
constexpr const char* kVolumeMountFolder = "/var/run/nvidia-container-devices";

bool uses(const PluginConfig& config, ListStrategy strategy) {
  return std::ranges::find(config.strategies, strategy) != config.strategies.end();
}

bool uses_nvidia_runtime(const PluginConfig& config) {
  return uses(config, ListStrategy::kEnvironment) || uses(config, ListStrategy::kVolumeMounts);
}

/// Without CDI, and without NVIDIA's runtime, nobody else would bring the devices.
bool passes_device_specs(const PluginConfig& config, CdiSupport cdi) {
  if (cdi != CdiSupport::kYes && !uses_nvidia_runtime(config)) return true;
  return config.pass_device_specs.value_or(false);
}

class Grant {
 public:
  Grant(const PluginConfig& config, const NodeParts& parts) : config_(config), parts_(parts) {}

  void name(const std::vector<GrantedGpu>& gpus, const std::string& unique) {
    const bool indices = config_.ids_are_indices && uses_nvidia_runtime(config_);
    std::vector<std::string> names, uuids, cdi_names;
    for (const auto& [device, nodes] : gpus) {
      const bool by_index = indices && !device.uuid.starts_with("MIG-");
      names.push_back(by_index ? std::to_string(device.index) : device.uuid);
      uuids.push_back(device.uuid);
      cdi_names.push_back(fmt::format("{}={}", kPluginCdiKind, device.uuid));
    }
    // Behind the GPUs, for each of them says that there is none.
    if (!gpus.empty()) cdi_names.push_back(set_device(gpu_set(uuids)));
    // Whatever an image says of it: nobody but us gives GPUs. What CDI devices say counts for more.
    made_.environment[kVisibleDevices] = gpus.empty() ? "void" : fmt::format("{}", fmt::join(names, ","));
    if (uses(config_, ListStrategy::kVolumeMounts)) {
      if (!uses(config_, ListStrategy::kEnvironment)) made_.environment[kVisibleDevices] = kVolumeMountFolder;
      for (const auto& name : names)
        made_.mounts.push_back({fmt::format("{}/{}", kVolumeMountFolder, name), "/dev/null"});
    }
    if (uses(config_, ListStrategy::kCdiAnnotations))
      made_.annotations[config_.cdi_annotation_prefix + "drover_" + unique] =
          fmt::format("{}", fmt::join(cdi_names, ","));
    if (uses(config_, ListStrategy::kCdiCri)) made_.cdi_devices = std::move(cdi_names);
  }

  /// Two parts of a GPU have its node in common.
  void pass(const gpu::DeviceNode& node) {
    constexpr std::string_view kDev = "/dev";
    const GrantedPath path{node.path, parts_.device_folder + node.path.substr(kDev.size())};
    if (std::ranges::find(made_.devices, path) == made_.devices.end()) made_.devices.push_back(path);
  }

  void pass_volume() {
    made_.mounts.insert(made_.mounts.end(), parts_.driver_volume.begin(), parts_.driver_volume.end());
  }

  ContainerGrant take() && { return std::move(made_); }

 private:
  const PluginConfig& config_;
  const NodeParts& parts_;
  ContainerGrant made_;
};

}  // namespace

bool names_cdi_devices(const PluginConfig& config) {
  return uses(config, ListStrategy::kCdiCri) || uses(config, ListStrategy::kCdiAnnotations);
}

void add_mps(const share::MpsPlaces& places, ContainerGrant& grant) {
  grant.environment[share::kMpsPipeVariable] = share::kMpsPipe;
  grant.mounts.push_back({share::kMpsPipe, places.pipe, false});
  grant.mounts.push_back({share::kMpsShm, places.shm, true});
}

void add_guard(const std::string& uuid, const std::string& pages, ContainerGrant& grant) {
  const auto plain = fmt::format("{}={}", kPluginCdiKind, uuid);
  const auto guarded = fmt::format("{}={}", kReplicaCdiKind, pages);
  std::ranges::replace(grant.cdi_devices, plain, guarded);
  for (auto& [name, value] : grant.annotations)
    if (const auto place = value.find(plain); place != std::string::npos)
      value.replace(place, plain.size(), guarded);
  grant.annotations[kReplicaAnnotation] = pages;
}

ContainerGrant grant(const std::vector<GrantedGpu>& gpus, const PluginConfig& config, const NodeParts& parts,
                     const std::string& unique) {
  Grant made(config, parts);
  made.name(gpus, unique);
  if (passes_device_specs(config, parts.cdi)) {
    for (const auto& gpu : gpus)
      for (const auto& node : gpu.nodes) made.pass(node);
    for (const auto& node : parts.control_nodes) made.pass(node);
    if (parts.cdi != CdiSupport::kYes) made.pass_volume();
  }
  return std::move(made).take();
}

}  // namespace drover::kube

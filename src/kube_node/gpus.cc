#include "kube_node/gpus.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "driver/cdi.h"
#include "gpu/device_files.h"
#include "gpu/discovery.h"
#include "gpu/kernel.h"
#include "gpu/recognise.h"
#include "kube/known_gpus.h"
#include "kube_node/mig.h"

namespace drover {
namespace {

constexpr std::chrono::seconds kPause{2};  ///< between discoveries

void log_change(const gpu::HealthChange& change) {
  for (const auto& reason : change.opened)
    spdlog::warn("GPU {}: {}{}", change.uuid, to_string(reason),
                 reason.takes_out ? "; nobody is given it" : "");
  for (const auto& reason : change.closed)
    spdlog::info("GPU {}: it is over that {}", change.uuid, to_string(reason));
  if (change.healthy && !change.was_healthy) spdlog::info("GPU {} is given out again", change.uuid);
}

gpu::Sight discover(const Hardware& hardware, const gpu::Sight& before) {
  gpu::Sight now;
  now.inventory = kube::keep_known(before.inventory, gpu::recognise(hardware.discover(), before.inventory));
  now.mig = discover_mig(hardware, now.inventory, before.mig);
  return now;
}

}  // namespace

KubeGpus::KubeGpus(Hardware hardware, gpu::HealthWatchOptions health, gpu::HealthWatch::Listener listener)
    : hardware_(std::make_shared<const Hardware>(std::move(hardware))),
      watch_([held = hardware_](const gpu::Sight& before) { return discover(*held, before); },
             [this] { return hardware_->shared_nvml(); },
             {.pause = kPause,
              .health = std::move(health),
              .seen = {},
              .changed = [listener = std::move(listener)](const gpu::HealthChange& change) {
                log_change(change);
                listener(change);
              }}) {}

kube::PluginDevices KubeGpus::plugin_devices(const std::set<gpu::MigPart>& made,
                                             kube::MigStrategy strategy) const {
  const auto now = view();
  auto devices = kube::plugin_devices(now.inventory, now.mig, made, strategy);
  mark_unhealthy(now, devices);
  return devices;
}

Result<std::vector<gpu::DeviceNode>> KubeGpus::nodes_of(const gpu::Device& device,
                                                        const kube::PluginDevices& devices) const {
  const auto part = devices.parts.find(device.uuid);
  return part == devices.parts.end() ? hardware_->nodes_of({device})
                                     : mig_nodes_of(*hardware_, device, part->second.instance);
}

kube::PoolFacts KubeGpus::pool_facts(const kube::PluginDevices& devices, kube::CdiSupport cdi) const {
  kube::PoolFacts facts;
  facts.inventory = devices.inventory;
  for (const auto& [uuid, part] : devices.parts) facts.resources[uuid] = part.resource;
  for (const auto& device : facts.inventory.devices) {
    if (!device.unhealthy.empty()) continue;
    if (const auto nodes = nodes_of(device, devices))
      facts.nodes[device.uuid] = *nodes;
    else
      facts.troubles[device.uuid] = to_string(nodes.error());
  }
  facts.parts.cdi = cdi;
  facts.parts.device_folder = hardware_->device_folder();
  const auto supply = hardware_->driver_supply();
  if (!supply) {  // a GPU without its control devices is of no use
    for (const auto& [uuid, nodes] : facts.nodes) facts.troubles[uuid] = to_string(supply.error());
    facts.nodes.clear();
    return facts;
  }
  facts.parts.control_nodes = supply->control_devices;
  if (cdi == kube::CdiSupport::kYes) return facts;
  if (const auto volume = supply->volume())
    for (const auto& part : *volume)
      facts.parts.driver_volume.push_back({part.destination, part.source, part.writable});
  return facts;
}

MissingFiles KubeGpus::missing_files() const {
  MissingFiles missing;
  const auto supply = hardware_->driver_supply();
  for (const auto& device : inventory().devices) {
    if (!device.unhealthy.empty() && device.unhealthy != gpu::kInMigMode) continue;
    if (!supply)
      missing[device.uuid] = to_string(supply.error());
    else if (const auto nodes = hardware_->nodes_of({device}); !nodes)
      missing[device.uuid] = to_string(nodes.error());
  }
  return missing;
}

kube::dra::View KubeGpus::view() const {
  kube::dra::View view;
  auto sight = watch_.sight();
  view.inventory = std::move(sight.inventory);
  view.mig = std::move(sight.mig);
  const auto known = health();
  const gpu::Kernel kernel;
  for (const auto& device : view.inventory.devices) {
    add_health(device, known.reasons(device.uuid), view);
    if (!device.pci || view.inventory.simulated) continue;
    if (auto root = kernel.pcie_root(*device.pci)) view.pcie_roots[device.uuid] = std::move(*root);
  }
  return view;
}

std::shared_ptr<kube::dra::MigInstances> KubeGpus::mig_instances() const {
  return std::make_shared<KubeMig>(*hardware_, [this] { return inventory(); });
}

Result<kube::GpuEdits> KubeGpus::edits(bool guarded) const {
  kube::GpuEdits edits;
  DROVER_TRY(const auto supply, hardware_->driver_supply(guarded));
  const auto& folder = hardware_->device_folder();
  edits.common = driver::edits_of_nodes(supply.control_devices, folder);
  DROVER_TRY(const auto files, supply.files());
  edits.common.append(files);
  if (guarded) edits.guard = {driver::mounts_of_guard(files, hardware_->guard()), hardware_->hook_program()};
  for (const auto& device : inventory().devices)
    if (const auto nodes = hardware_->nodes_of({device}))
      edits.of_gpu[device.uuid] = driver::edits_of_nodes(*nodes, folder);
  return edits;
}

Result<cdi::Specification> KubeGpus::plugin_specification(const kube::PluginDevices& devices) const {
  DROVER_TRY(const auto all, edits(false));
  cdi::Specification made;
  made.kind = kube::kPluginCdiKind;
  made.edits.environment = {"NVIDIA_VISIBLE_DEVICES=void"};
  made.edits.append(all.common);
  for (const auto& device : devices.inventory.devices)
    if (const auto nodes = nodes_of(device, devices); nodes && device.unhealthy.empty())
      made.devices.push_back({device.uuid, {}, driver::edits_of_nodes(*nodes, hardware_->device_folder())});
  made.version = cdi::required_version(made);
  return made;
}

}  // namespace drover

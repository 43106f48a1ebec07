#pragma once

// The GPUs of a Kubernetes node as its roles see them: what is there, how healthy it is, and what containers
// get of it. Puts hardware.h and the watch of the GPUs together. Thread safe.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cdi/specification.h"
#include "gpu/inventory_watch.h"
#include "gpu/usage_sampler.h"
#include "hardware.h"
#include "kube/dra/claim_specification.h"
#include "kube/dra/preparer.h"
#include "kube/dra/view.h"
#include "kube/plugin/mig_devices.h"
#include "kube/plugin/pool.h"
#include "kube_node/offer.h"

namespace drover {

class KubeGpus {
 public:
  /// `listener` hears of every change of a GPU's health, as gpu::HealthWatch tells it.
  KubeGpus(Hardware hardware, gpu::HealthWatchOptions health, gpu::HealthWatch::Listener listener);

  /// What the last discovery found, and who is unhealthy now.
  gpu::Inventory inventory() const { return watch_.inventory(); }
  /// How those in MIG mode are cut, by UUID.
  std::map<std::string, gpu::MigGpu> mig() const { return watch_.sight().mig; }
  /// What is known of their health now.
  gpu::Health health() const { return watch_.health(); }
  gpu::SharedNvml nvml() const { return hardware_->shared_nvml(); }
  /// What they do now, by UUID; waits for those that are slow, but not for long.
  std::map<std::string, gpu::GpuUsage> usage() { return usage_.sample(inventory().devices); }
  /// The same for one who asks again and again what was done meanwhile: nobody else asks here.
  std::map<std::string, gpu::GpuUsage> work_done() { return work_done_.sample(inventory().devices); }
  /// GPUs and MIG devices for the device plugin; those instances are not among them that are `made` for
  /// claims.
  kube::PluginDevices plugin_devices(const std::set<gpu::MigPart>& made, kube::MigStrategy strategy) const;
  /// What it is to know of them. `cdi` decides whether the driver's volume is needed.
  kube::PoolFacts pool_facts(const kube::PluginDevices& devices, kube::CdiSupport cdi) const;
  /// GPUs that are healthy, and that no container could use: what of their device files, or of the driver's,
  /// is missing.
  MissingFiles missing_files() const;
  /// The same, for the scheduler; GPUs that are unhealthy have no taint yet.
  kube::dra::View view() const;
  /// How containers are edited for each GPU, also one that is unhealthy: some claims tolerate that.
  /// With the guard before the driver for those that are `guarded`, where that can be.
  Result<kube::GpuEdits> edits(bool guarded) const;
  /// Of single GPUs by their UUIDs, which the kubelet's device manager gives out.
  Result<cdi::Specification> plugin_specification(const kube::PluginDevices& devices) const;
  /// What sets how they are shared.
  Result<share::Programs> sharing_programs() const { return hardware_->sharing_programs(); }
  /// Makes and destroys MIG instances of them; this object must outlive it.
  std::shared_ptr<kube::dra::MigInstances> mig_instances() const;

 private:
  Result<std::vector<gpu::DeviceNode>> nodes_of(const gpu::Device& device,
                                                const kube::PluginDevices& devices) const;

  std::shared_ptr<const Hardware> hardware_;
  // These end first: they ask the hardware.
  gpu::UsageSampler usage_{[this] { return hardware_->shared_nvml(); }};
  gpu::UsageSampler work_done_{[this] { return hardware_->shared_nvml(); }};
  gpu::InventoryWatch watch_;
};

}  // namespace drover

#pragma once

// What the cluster is told of a node's GPUs, as conditions of the node and as Events. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/device.h"
#include "gpu/health.h"
#include "gpu/mig.h"
#include "kube/events/event_book.h"
#include "kube/events/node_condition.h"
#include "kube/kubelet/pod_resources.h"
#include "kube/plugin/allocation.h"
#include "kube/plugin/mig_devices.h"
#include "kube/usage/attribution.h"

namespace drover::kube {

struct NodeState {
  gpu::Inventory inventory;
  gpu::Inventory whole;                    ///< those that are given out whole; see whole_gpus()
  PluginDevices offered;                   ///< by limits; labels tell of its MIG devices
  std::map<std::string, gpu::MigGpu> mig;  ///< by UUID, of GPUs in MIG mode
  CdiSupport cdi = CdiSupport::kUnknown;
  std::string runtime;  ///< what is wrong with the container runtime, a sentence; "" when nothing is
  std::optional<std::string>
      claims;  ///< why claims are not served; "" when they are; absent: nor should they

  bool operator==(const NodeState&) const = default;
};

inline constexpr std::string_view kGpusReady = "DroverGpusReady";
inline constexpr std::string_view kCdiSupported = "DroverCdiSupported";
inline constexpr std::string_view kClaimsServed = "DroverClaimsServed";

/// One of each type; of claims only where they should be served.
std::vector<NodeCondition> node_conditions(const NodeState& state);

/// An Event, and whether the pods that have the GPU are told too.
struct GpuEvent {
  EventText text;
  bool for_pods = true;
  gpu::MigInstance instance;  ///< what of a GPU in MIG mode it concerns; nothing: all of it

  bool operator==(const GpuEvent&) const = default;
};
/// `gpu` is its name for people: "GPU 3 (GPU-5f…)".
std::vector<GpuEvent> events_of(const gpu::HealthChange& change, std::string_view gpu);

/// Whether the state tells of a MIG device that the instance concerns; of a GPU that is not cut there is
/// nothing to know. A claim's MIG device is made when its pod starts, and may fail before it was looked at.
bool knows_instance(const NodeState& state, const std::string& gpu, const gpu::MigInstance& instance);

/// Which pods have this GPU, by its UUID, or a part of it that the instance concerns; each once.
std::vector<PodName> pods_with(const std::string& gpu, const gpu::MigInstance& instance,
                               const NodeState& state, const ClaimNames& claims,
                               const std::vector<ContainerUse>& containers);

}  // namespace drover::kube

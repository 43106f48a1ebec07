#pragma once

// The node's GPUs as devices of Dynamic Resource Allocation, resource.k8s.io/v1. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kube/dra/mig_devices.h"
#include "kube/dra/view.h"

namespace drover::kube::dra {

/// How a GPU may be given (KEP-5075). In all three, a request that names no capacity gets a whole GPU.
enum class Sharing {
  kWhole,   ///< to one claim
  kMemory,  ///< to several, each with some of its memory: capacity `memory`, as NVIDIA's driver has it
  kShare,   ///< to several, each with some thousandths of it: capacity `share`, 1000 for a whole GPU
};

inline constexpr int kWholeGpu = 1000;

/// Of each GPU that has a name: name, attributes, capacity, taints; by their order in the inventory. A GPU in
/// MIG mode is there as its MIG devices only (mig_devices.h): as a whole it would need the mode changed,
/// which needs a reset. A GPU that is unhealthy has a taint `<driver>/unfit` that no workload tolerates by
/// chance.
std::vector<nlohmann::json> devices_of(const View& view, Sharing sharing, const std::string& driver);

/// Those of its troubles that keep it from being given, as one sentence; "" for a healthy one.
std::string ailment_of(const View& view, const gpu::Device& device);
/// Of a MIG device: its own, and its GPU's.
std::string ailment_of(const View& view, const gpu::Device& device, const MigDevice& mig);

/// What `memory` of such a GPU adds up to: rounded down to what can be asked for where it is shared by
/// memory.
std::uint64_t memory_offered(std::uint64_t memory_bytes, Sharing sharing);

}  // namespace drover::kube::dra

#pragma once

// What of a pod placement counts, GPUs, CPUs and memory, and what is left for the predicates. Pure.

#include <optional>
#include <string>

#include "kube/scheduler/pod.h"
#include "placement/request.h"

namespace drover::kube::scheduler {

/// The extended resource by which pods ask for whole GPUs.
inline constexpr const char* kGpuResource = "nvidia.com/gpu";

struct Demand {
  placement::Request request;  ///< without what it says of its GPUs, where that is a mistake
  /// Only GPUs, and what it says of those that its claims give it; nullopt: nothing.
  std::optional<placement::Request> of_claims;
  std::string mistake;  ///< in words for whoever made the pod; "": none
};
Demand demand_of(const Pod& pod, const std::string& gpu_resource);
/// For so many GPUs, whatever they are like: of a pod that has them.
placement::Request counted(placement::Request demand, int gpus);
/// The same pod, asking for none of that.
PodTemplate without_demand(const PodTemplate& made_from, const std::string& gpu_resource);

}  // namespace drover::kube::scheduler

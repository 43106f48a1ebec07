#pragma once

// What of a pod placement counts, GPUs, CPUs and memory, and what is left for the predicates. Pure.

#include <string>

#include "kube/scheduler/pod.h"
#include "placement/request.h"

namespace drover::kube::scheduler {

/// The extended resource by which pods ask for whole GPUs.
inline constexpr const char* kGpuResource = "nvidia.com/gpu";

placement::Request demand_of(const PodTemplate& made_from, const std::string& gpu_resource);
/// The same pod, asking for none of that.
PodTemplate without_demand(const PodTemplate& made_from, const std::string& gpu_resource);

}  // namespace drover::kube::scheduler

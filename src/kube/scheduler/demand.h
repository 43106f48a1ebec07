#pragma once

// What of a pod placement counts, GPUs, CPUs and memory, and what is left for the predicates. Pure.

#include <string>

#include "base/result.h"
#include "kube/scheduler/pod.h"
#include "placement/request.h"

namespace drover::kube::scheduler {

/// The extended resource by which pods ask for whole GPUs.
inline constexpr const char* kGpuResource = "nvidia.com/gpu";

/// What it says of its GPUs counts when check_gpu_request() finds nothing wrong.
placement::Request demand_of(const PodTemplate& made_from, const std::string& gpu_resource);
/// kInvalid, in words for whoever made the pod.
Status check_gpu_request(const Pod& pod, const std::string& gpu_resource);
/// For so many GPUs, whatever they are like: of a pod that has them.
placement::Request counted(placement::Request demand, int gpus);
/// The same pod, asking for none of that.
PodTemplate without_demand(const PodTemplate& made_from, const std::string& gpu_resource);

}  // namespace drover::kube::scheduler

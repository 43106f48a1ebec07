#pragma once

// What a pod says of the GPUs that it asks for by number: what each must be like, and how they are to be
// joined. An annotation, with the fields of a task's JSON:
//
//   drover.dev/gpu-request: '{"gpu_model": "A100", "gpu_memory": "40GiB", "interconnect": "nvlink"}'
//   drover.dev/gpu-request: '{"gpus": [{"count": 1, "model": "A100"}, {"count": 1, "ecc": true}]}'
//
// Pure.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "placement/request.h"

namespace drover::kube::scheduler {

inline constexpr std::string_view kGpuRequestAnnotation = "drover.dev/gpu-request";

/// Whether it is more than a number of whole GPUs.
bool is_particular(const placement::Request& request);

/// "" when there is nothing to say but the number.
std::string write_gpu_request(const placement::Request& request);

/// Adds it to a request for that many GPUs; nullopt: for as many as it says. kInvalid names every mistake,
/// and nothing is added then.
Status add_gpu_request(std::string_view text, std::optional<int> gpus, placement::Request& request);

}  // namespace drover::kube::scheduler

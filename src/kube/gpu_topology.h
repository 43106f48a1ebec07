#pragma once

// What a node's annotation says of its GPUs, so that a scheduler can choose among them: which there are, and
// how each two are joined. Pure.

#include <string>
#include <string_view>

#include "base/result.h"
#include "gpu/device.h"

namespace drover::kube {

/// Of a Node: write_topology() of the GPUs that its kubelet gives out whole.
inline constexpr std::string_view kTopologyAnnotation = "drover.dev/gpu-topology";
/// Of a pod: the UUIDs of the GPUs that were chosen for it, with commas between.
inline constexpr std::string_view kChosenGpusAnnotation = "drover.dev/gpus";
/// Of a pod: the UUIDs of the GPUs that its claims give it, for those who look. Nobody gives them by it.
inline constexpr std::string_view kClaimedGpusAnnotation = "drover.dev/claimed-gpus";

/// Why a GPU is not given out whole that somebody has, or has a part of, by a claim.
inline constexpr std::string_view kInUseByClaim = "in use by a claim";
/// The same for who has it under another name.
inline constexpr std::string_view kInUseAs = "in use as ";
/// The same while an agent that has just begun does not know who has what.
inline constexpr std::string_view kUsageUnknown = "the kubelet has not told yet who has which GPU";

/// Whether a GPU is withheld for one of these reasons, and not because something is wrong with it.
bool is_about_use(std::string_view withheld);

std::string write_topology(const gpu::Inventory& inventory);
/// kInvalid names the first mistake. There is nothing in it but what write_topology() has written.
Result<gpu::Inventory> read_topology(std::string_view text);

}  // namespace drover::kube

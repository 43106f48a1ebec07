#pragma once

// CUDA_VISIBLE_DEVICES: which GPUs a process wants to see, and in which order. Pure.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drover::sim::cuda {

/// Positions in `uuids` of the GPUs that `value` names, in its order: by position, by UUID, or by the
/// beginning of one that no other has. What comes after the first name that is wrong is not looked at; a GPU
/// that is named twice is such a mistake that none is left. Without a value all are visible.
std::vector<std::size_t> visible_devices(const std::vector<std::string>& uuids,
                                         std::optional<std::string_view> value);

}  // namespace drover::sim::cuda

#pragma once

// What CUDA says of a card in numbers. Pure.

#include <optional>

#include "sim/profile.h"

namespace drover::sim::cuda {

/// The value of a CU_DEVICE_ATTRIBUTE; 0 for what the card cannot, none for what is no attribute.
std::optional<int> device_attribute(const Gpu& gpu, int attribute);

}  // namespace drover::sim::cuda

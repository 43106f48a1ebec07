#pragma once

// The families of NVIDIA's GPUs. Pure.

#include <string_view>

#include "gpu/device.h"

namespace drover::gpu {

/// As NVIDIA names them: "Ampere", "Ada Lovelace"; "" for one that is not known.
std::string_view architecture_of(const ComputeCapability& capability);

}  // namespace drover::gpu

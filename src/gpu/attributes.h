#pragma once

// What a machine is called by its GPUs. Pure.

#include <map>
#include <string>
#include <vector>

#include "gpu/device.h"

namespace drover::gpu {

/// "gpu_model", "driver" and "cuda", as far as they are known.
std::map<std::string, std::vector<std::string>> attributes_of(const Inventory& inventory);

}  // namespace drover::gpu

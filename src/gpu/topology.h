#pragma once

// The matrix of a machine's GPUs as people know it from `nvidia-smi topo -m`. Pure.

#include <string>

#include "gpu/device.h"

namespace drover::gpu {

/// Columns are separated by tabs and blanks as there; the legend follows. "" without GPUs.
std::string topology_matrix(const Inventory& inventory);

}  // namespace drover::gpu

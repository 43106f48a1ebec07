#pragma once

// The matrix of a machine's GPUs as people know it from `nvidia-smi topo -m`. Pure.

#include <string>

#include "gpu/device.h"

namespace drover::gpu {

/// "NV12", or the PCIe level where no NVLink joins the two: "PIX", "SYS".
std::string link_label(const Link& link);

/// Columns are separated by tabs and blanks as there; the legend follows. "" without GPUs.
std::string topology_matrix(const Inventory& inventory);

}  // namespace drover::gpu

#pragma once

// How the GPUs of one machine are joined: NVLinks and PCIe. Part of discovery; records what fails at the
// devices.

#include <vector>

#include "gpu/device.h"
#include "gpu/kernel.h"
#include "gpu/nvml.h"

namespace drover::gpu {

/// The square matrix of Inventory::links. `handles[i]` belongs to `devices[i]` and is nullptr where NVML
/// gives none; `kernel` may be nullptr.
std::vector<std::vector<Link>> discover_links(const Nvml& nvml, const std::vector<nvmlDevice_t>& handles,
                                              std::vector<Device>& devices, const Kernel* kernel);

}  // namespace drover::gpu

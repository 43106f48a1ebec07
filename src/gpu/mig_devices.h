#pragma once

// The MIG devices that NVML lists of a GPU. Blocks while the driver answers.

#include <vector>

#include "gpu/nvml.h"

namespace drover::gpu {

/// A compute instance: what programs see as a device.
struct MigDevice {
  nvmlDevice_t handle = nullptr;
  unsigned gpu_instance = 0, compute_instance = 0;
};

/// In NVML's order; none of a GPU that is not in MIG mode, or of a library without MIG.
std::vector<MigDevice> list_mig_devices(const Nvml& nvml, nvmlDevice_t gpu);

}  // namespace drover::gpu

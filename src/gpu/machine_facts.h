#pragma once

// What an image is held against before a task starts: a driver, a CPU, and GPUs. A value.

#include <string>
#include <vector>

#include "gpu/cpu.h"
#include "gpu/device.h"

namespace drover::gpu {

struct MachineFacts {
  std::string driver;           ///< of the kernel: "396.44"; "" when there is none, or it is not known
  std::string cuda;             ///< the newest that it serves; "" when not known
  std::vector<Device> devices;  ///< those that the task is given
  CpuFeatures cpu;              ///< what programs may use

  bool operator==(const MachineFacts&) const = default;
};

}  // namespace drover::gpu

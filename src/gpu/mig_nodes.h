#pragma once

// The device nodes by which the kernel decides who may use a MIG device: beside its GPU's own node, one of
// the GPU instance and one of the compute instance. The driver tells their numbers for every instance that
// could be. Blocks; thread safe.

#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/device_node.h"
#include "gpu/mig.h"

namespace drover::gpu {

/// Where the driver tells of them.
struct MigNodePlaces {
  std::string minors = "/proc/driver/nvidia-caps/mig-minors";
  std::string drivers = "/proc/devices";
  std::string devices = "/dev";
};

/// Of the GPU with the number `minor`: first the GPU instance's, then the compute instance's. Those that are
/// missing are made, as nvidia-modprobe does, where that is allowed. kNotFound when the driver does not know
/// them.
Result<std::vector<DeviceNode>> mig_device_nodes(const MigNodePlaces& places, int minor,
                                                 const MigInstanceFacts& instance);

/// What `minors` says of the GPUs with these numbers, as the driver writes it.
std::string mig_minors_text(const std::vector<int>& minors);

}  // namespace drover::gpu

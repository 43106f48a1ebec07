#pragma once

// The Container Device Interface specification of this machine's GPUs: what container engines that know CDI
// (podman, containerd, CRI-O, Docker 25 and newer) read from /etc/cdi to give "nvidia.com/gpu=0" to a
// container. The format is cncf-tags/container-device-interface, SPEC.md. Pure.

#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/device.h"
#include "gpu/device_node.h"

namespace drover::driver {

struct CdiInput {
  gpu::Inventory inventory;
  std::string device_folder = "/dev";          ///< where the nodes are on the host
  std::vector<gpu::DeviceNode> gpu_nodes;      ///< of inventory.devices; those without a node are left out
  std::vector<gpu::DeviceNode> control_nodes;  ///< go with every GPU
  std::string volume;                          ///< the driver volume's folder on the host
};

/// JSON text. Every GPU that is fit is there by its index and by its UUID, and all of them as "all".
/// kNotFound when there is none.
Result<std::string> cdi_specification(const CdiInput& input);

}  // namespace drover::driver

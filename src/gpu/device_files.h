#pragma once

// The character devices of NVIDIA's driver in one folder (/dev, or the private one of a simulation), as a
// container gets them: always under /dev. Exactly the names asked for are looked at, so that folders such as
// nvidia-caps beside them never matter. Blocks; thread safe.

#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/device_node.h"

namespace drover::gpu {

/// Of folders that hold such devices, the one that has most of the control devices; the first of several. A
/// driver container makes all of them below its own root, and NVML, when root calls it, some in /dev.
std::string device_folder_of(const std::vector<std::string>& folders);

/// <folder>/nvidia<minor> of one GPU. kNotFound when it is missing, kInvalid when it is no character device.
Result<DeviceNode> gpu_device_node(const std::string& folder, int minor);

/// nvidiactl, which must exist, then nvidia-uvm and nvidia-uvm-tools if they do.
Result<std::vector<DeviceNode>> control_device_nodes(const std::string& folder);

/// All of NVIDIA's character devices that are there, also those of its folders such as nvidia-caps.
std::vector<DeviceNode> nvidia_device_nodes(const std::string& folder);

/// The nodes by which NVIDIA's cards draw, those of /dev/dri, as the kernel tells of them below
/// /sys/class/drm.
std::vector<DeviceNode> nvidia_screen_nodes(const std::string& drm = "/sys/class/drm");

}  // namespace drover::gpu

#pragma once

// A character device node as a container gets it. Values only.

#include <sys/types.h>

#include <string>

namespace drover::gpu {

struct DeviceNode {
  std::string path;  ///< in the container: "/dev/nvidia0"
  unsigned major = 0;
  unsigned minor = 0;
  mode_t mode = 0666;

  bool operator==(const DeviceNode&) const = default;
};

}  // namespace drover::gpu

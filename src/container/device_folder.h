#pragma once

// /dev of a container: the harmless nodes that every container has, those of its devices, and nothing of the
// machine's. Used in the shim's mount namespace, before the runtime is started. Not thread safe.

#include <string>

#include "base/result.h"
#include "container/launch_spec.h"
#include "container/mount_points.h"

namespace drover::container {

/// Mounts it below `root`. The result is where more can be mounted in it.
Result<MountPoints> make_device_folder(const LaunchSpec& spec, const std::string& root);

}  // namespace drover::container

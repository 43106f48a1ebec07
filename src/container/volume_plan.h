#pragma once

// Where a task's volumes go in its container. Pure; thread safe.

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "container/containerizer.h"
#include "image/image.h"

namespace drover::container {

/// One volume on its way into a container. The shim opens it and mounts it at <task>/volumes/<number>, from
/// where the runtime takes it.
struct VolumePlan {
  std::string host_path;
  std::string destination;  ///< absolute, in the container
  std::string
      sandbox_path;  ///< the same below the sandbox, where the shim makes a place for it; "": elsewhere
  bool read_only = false;
  bool kernel = false;  ///< of a privileged task: it may lie in a file system of the kernel, or hold one

  bool operator==(const VolumePlan&) const = default;
};

/// kInvalid, with the path of the volume in the request, for one that would cover, or lie in, what isolation
/// rests on: /proc, /sys, /dev, the driver volume, the sandbox, the root itself. `image` is null for an
/// image-less task, and `sandbox` its place on the host.
Result<std::vector<VolumePlan>> plan_volumes(const Launch& launch, const image::Image* image,
                                             const std::string& sandbox);

/// "/a//b/./c/" → "/a/b/c"; no "..".
std::string plain_path(const std::string& path);
/// Whether `path` is `folder` or lies in it. Both plain.
bool is_within(const std::string& path, const std::string& folder);

}  // namespace drover::container

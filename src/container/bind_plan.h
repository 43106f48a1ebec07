#pragma once

// What is mounted into a container's root file system before the runtime sees it. A runtime makes missing
// places as root, wherever a path leads by then; here each place is found and made by descriptor
// (mount_points.h). Values only.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "cdi/specification.h"

namespace drover::container {

/// A file or folder of the machine, named by somebody who may: Drover itself, or whoever installed a CDI
/// specification.
struct BindPlan {
  std::string source;
  std::string destination;  ///< absolute, in the container
  std::vector<std::string>
      options;  ///< as in fstab: "rbind", "ro", "nosuid", "nodev", "noexec"; others say nothing here

  bool operator==(const BindPlan&) const = default;
};

/// Takes the bind mounts out of the mounts of an OCI configuration; what lies in what the runtime mounts
/// stays. kUnsupported when a device asks for a mount of another kind: only a runtime could make that.
Result<std::vector<BindPlan>> take_binds(nlohmann::json& configuration);

/// kUnsupported when a device wants a mount over what Drover and the runtime make for each container.
Status check_mounts(const cdi::Edits& devices);

}  // namespace drover::container

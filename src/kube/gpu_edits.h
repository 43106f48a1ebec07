#pragma once

// What a container on a node gets of GPUs: by a claim, or by a replica of the device plugin's. Pure.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cdi/specification.h"

namespace drover::kube {

/// What brings the guard into a container.
struct GuardEdits {
  std::vector<cdi::Mount> mounts;  ///< those of GpuEdits::common that do
  std::string program;             ///< of the hook that looks whether they did
};

/// How containers are edited for GPUs now.
struct GpuEdits {
  cdi::Edits common;  ///< control devices and the driver's files, once for every container
  GuardEdits guard;   ///< without mounts where those have none before the driver
  std::map<std::string, cdi::Edits> of_gpu;  ///< by UUID: its device node
  std::map<std::string, cdi::Edits> of_mig;  ///< by the name of the MIG device, of those in the claim
};

/// Looks for the driver's files; with the guard before them for containers that are `guarded`, and fails
/// where it cannot be there.
using FindEdits = std::function<Result<GpuEdits>(bool guarded)>;

/// What all of a container's edits are besides its GPUs', with the pages that are in the folder `pages`
/// (share/pages.h), and a hook that refuses containers in which something else has taken the places of those
/// or of the guard. `edits` are of containers that are guarded.
cdi::Edits guarded_edits(const GpuEdits& edits, const std::string& pages);

}  // namespace drover::kube

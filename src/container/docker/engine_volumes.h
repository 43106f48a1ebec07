#pragma once

// Mounts a task's sandbox and volumes in its folder, where an engine takes them from: in the machine's own
// mount namespace, for as long as a container starts. What lies in the sandbox or in another volume is
// mounted there already, so that the engine makes nothing in what is a user's (engine_mounts.h).

#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/users.h"
#include "container/volume_plan.h"

namespace drover::container::docker {

/// In the folder kVolumes: the sandbox as kSandboxSource, and volume n as "<n>". All of it is a file system
/// of its own: an engine that does not see our mounts finds nothing there, rather than empty folders. Volumes
/// are opened, and places in them made, with the rights of `user`; `hidden` as for open_volume_tree().
Status expose_volumes(const std::vector<VolumePlan>& volumes, const User& user,
                      const std::vector<std::string>& hidden, const Directory& task);

/// Undoes it. Idempotent.
void unmount_volumes(const Directory& task);

}  // namespace drover::container::docker

#pragma once

// Mounts a task's volumes. Each is opened with the rights of the task's user and mounted by that descriptor:
// what the user cannot reach on the host is not reached, and nothing can be exchanged between the look and
// the mount.

#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/users.h"
#include "container/mount_points.h"
#include "container/volume_plan.h"

namespace drover::container {

/// The folder in a task's folder where an engine finds volume n at "<n>".
inline constexpr const char* kVolumes = "volumes";

/// In the container's root file system, where `points` finds their places. `hidden` are the folders of the
/// daemon itself: nothing in them, and nothing that holds them, is given out. `imageless`: a place outside of
/// the sandbox must be there already, since the root is the host's.
Status mount_volumes(const std::vector<VolumePlan>& volumes, const User& user,
                     const std::vector<std::string>& hidden, const MountPoints& points, bool imageless);

/// For an engine: in the task's folder.
Status expose_volumes(const std::vector<VolumePlan>& volumes, const User& user,
                      const std::vector<std::string>& hidden, const Directory& task);

/// What was mounted in the task's folder, where others than the shim could see it. Idempotent.
void unmount_volumes(const Directory& task);

}  // namespace drover::container

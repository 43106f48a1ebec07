#pragma once

// Mounts a task's volumes. Each is opened with the rights of the task's user and mounted by that descriptor:
// what the user cannot reach on the host is not reached, and nothing can be exchanged between the look and
// the mount.

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/users.h"
#include "container/launch_spec.h"
#include "container/mount_points.h"
#include "container/volume_plan.h"

namespace drover::container {

/// What is to be mounted: opened with the user's rights, and mounted nowhere yet.
struct VolumeTree {
  UniqueFd tree;
  PlaceKind kind = PlaceKind::kFolder;
};
/// With the owners that its files have in a user namespace, if one is given. `hidden` are the folders of the
/// daemon itself: nothing in them, and nothing that holds them, is given out.
Result<VolumeTree> open_volume_tree(const VolumePlan& volume, const User& user,
                                    const std::vector<std::string>& hidden,
                                    const UserNamespace* ids = nullptr);

/// Whether the file systems of all these volumes can show their files with other owners. What is wrong with
/// them otherwise is for mount_volumes() to say.
bool can_map(const LaunchSpec& spec, const UserNamespace& ids);

/// In the container's root file system, where `points` finds their places. Without an image a place outside
/// of the sandbox must be there already, since the root is the host's.
Status mount_volumes(const LaunchSpec& spec, const MountPoints& points, const UserNamespace* ids);

}  // namespace drover::container

#pragma once

// Mounts a task's volumes where the runtime takes them from, mostly inside the shim's own mount namespace.
// Each is opened with the rights of the task's user and mounted by that descriptor: what the user cannot
// reach on the host is not reached, and nothing can be exchanged between the look and the mount.

#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/users.h"
#include "container/volume_plan.h"

namespace drover::container {

/// The folder in a task's folder where volume n is mounted at "<n>".
inline constexpr const char* kVolumes = "volumes";

/// `hidden` are the folders of the daemon itself: nothing in them, and nothing that holds them, is given out.
/// `imageless`: a destination outside of the sandbox must be there already, since the root is the host's.
Status mount_volumes(const std::vector<VolumePlan>& volumes, const User& user,
                     const std::vector<std::string>& hidden, bool imageless, const Directory& task);

/// What was mounted in the task's folder, where others than the shim could see it. Idempotent.
void unmount_volumes(const Directory& task);

}  // namespace drover::container

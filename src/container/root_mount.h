#pragma once

// Mounts a task's root file system inside the calling process's own mount namespace: it vanishes by itself
// with the last process of that namespace, so nothing is ever left mounted on the host. Linux 5.4 or newer
// (5.12 for a read-only host root).

#include <string>

#include "base/result.h"
#include "container/order.h"

namespace drover::container {

/// Leaves the host's mount namespace for one of its own that the host does not hear from. Only for a process
/// with one thread.
Status enter_private_mounts();

/// Mounts at <task_folder>/root all of the container's files that are not the kernel's own. An image becomes
/// an overlay whose writable layer is <task_folder>/upper, with the order's binds, the sandbox and the
/// volumes in it. The host's root becomes a copy of all its mounts without /dev, /proc and /sys, with the
/// hidden folders and files covered and <task_folder>/sandbox, writable, in its own place, and then the binds
/// and the volumes. Nothing but the sandbox and the user's volumes is written to, and those with his rights.
Status mount_container(const Order& order, const std::string& task_folder);

}  // namespace drover::container

#pragma once

// Mounts a task's root file system inside the calling process's own mount namespace: it vanishes by itself
// with the last process of that namespace, so nothing is ever left mounted on the host. It lies in a file
// system of its own over the specification's `mounts`, where also root of a container that is not the
// machine's may look; the task's folder is closed to it. Linux 5.4 or newer (5.12 for a read-only host root).

#include <string>

#include "base/result.h"
#include "container/launch_spec.h"

namespace drover::container {

/// Below the specification's `mounts`; its bundle is beside it.
inline constexpr const char* kRootMount = "root";

/// Leaves the host's mount namespace for one of its own that the host does not hear from. Only for a process
/// with one thread.
Status enter_private_mounts();

/// Mounts there all of the container's files that are not the kernel's own, and its /dev. An
/// image becomes an overlay whose writable layer is <task_folder>/upper, with the specification's binds, the
/// sandbox and the volumes in it, all with the owners that the specification's ids say. The host's root
/// becomes a copy of all its mounts without /dev, /proc and /sys, with the hidden folders and files covered
/// and <task_folder>/sandbox, writable, in its own place, and then the binds and the volumes. Nothing but the
/// sandbox and the user's volumes is written to, and those with his rights.
Status mount_container(const LaunchSpec& spec, const std::string& task_folder);

/// /sys in it, which shows the network namespace that lies at the path `network`; "": this process's.
Status mount_sysfs(const LaunchSpec& spec, const std::string& network);

}  // namespace drover::container

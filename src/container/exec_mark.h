#pragma once

// Commands that joined a container are known by a control group of their own inside of the container's, which
// nothing that they start can leave: so they can be ended without the rest of the container. Where there is
// no such group, as with a Docker Engine, they are known by a variable of their environment, which what they
// start inherits unless it clears it. Thread safe.

#include <string>

#include "container/cgroup.h"

namespace drover::container {

/// The name of the variable; its value is the command's id.
inline constexpr const char* kExecMarker = "DROVER_EXEC";

/// Of no other command of this daemon.
std::string next_exec_id();
/// The name of its group inside of the container's.
std::string exec_group(const std::string& id);
/// SIGKILL for it and everything it has started in the container; its group is removed.
void kill_exec(const Cgroup& cgroup, const std::string& id);
/// Ends what processes of earlier daemons have left in a container.
void end_forgotten_execs(const Cgroup& cgroup);

}  // namespace drover::container

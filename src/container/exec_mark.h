#pragma once

// Commands that joined a container are known by a control group of their own inside of the container's, which
// nothing that they start can leave: so they can be ended without the rest of the container. A Docker Engine
// makes no such group: there a command is held by its init until it was put into one, and is found by a
// variable of its environment. What an init of an earlier version did not hold is known by that alone, which
// what it starts inherits unless it clears it. Thread safe.

#include <string>

#include "container/cgroup.h"

namespace drover::container {

/// The name of the variable; its value is the command's id.
inline constexpr const char* kExecMarker = "DROVER_EXEC";

/// Of no other command of this daemon.
std::string next_exec_id();
/// The name of its group inside of the container's.
std::string exec_group(const std::string& id);
/// Puts a command that its init holds into its group, and lets it go on. False when there is none yet.
bool enclose_exec(const Cgroup& cgroup, const std::string& id);
/// SIGKILL for it and everything it has started in the container; its group is removed.
void kill_exec(const Cgroup& cgroup, const std::string& id);
/// Ends what processes of earlier daemons have left in a container.
void end_forgotten_execs(const Cgroup& cgroup);

}  // namespace drover::container

#pragma once

// Which task a process of this machine belongs to, by the control groups that it is in. Thread safe.

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "engine/ports.h"
#include "gpu/strangers.h"

namespace drover {

/// Of these tasks; of a task of Drover's that is not among them too, as long as its group tells its name.
gpu::TaskOf task_of(const std::vector<engine::TaskProcesses>& tasks);
/// Their processes now, by task; looks at every process of the machine.
std::map<std::string, std::vector<pid_t>> processes_of(const std::vector<engine::TaskProcesses>& tasks);
/// What still runs of each of them, in words, for people who wait for its end: "process 7 (train) hangs in
/// the kernel". None of a task that has no process.
std::map<std::string, std::string> what_still_runs(const std::vector<engine::TaskProcesses>& tasks);

}  // namespace drover

#pragma once

// What `parameters` of `docker run` in definitions of Marathon, Chronos and Mesos say of a task. Pure.

#include <string>

#include "base/result.h"
#include "workload/task.h"

namespace drover::workload {

/// What the task says already goes first: variables and labels are not replaced. Those that change nothing
/// about what runs here are taken and without effect; /dev/shm, for one, is as large as the task's memory
/// anyway. The error's path is "/key" or "/value".
Status read_docker_parameter(const std::string& key, const std::string& value, Task& task);

}  // namespace drover::workload

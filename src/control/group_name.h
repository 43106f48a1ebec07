#pragma once

// The names of a group whose tasks share GPUs. People name it, each for himself: nobody comes into that of
// somebody else by its name. Pure.

#include <string>

#include "workload/task.h"

namespace drover::control {

/// "1000/train": for placement, and for whoever watches its share. No id of a task is such. "" for a task
/// that is in none.
std::string group_of(const workload::Task& task);

/// "group-1000-train": of its MPS daemon, whose folder has that name too.
std::string mps_group_of(const workload::Task& task);

}  // namespace drover::control

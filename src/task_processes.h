#pragma once

// Which task a process of this machine belongs to, by the control groups that it is in. Thread safe.

#include <vector>

#include "engine/local.h"
#include "gpu/strangers.h"

namespace drover {

/// Of these tasks; of a task of Drover's that is not among them too, as long as its group tells its name.
gpu::TaskOf task_of(const std::vector<engine::TaskProcesses>& tasks);

}  // namespace drover

#pragma once

// Which layers the tasks of this machine are made of, as their launch specifications say: what must not be
// removed from under them. One is there from before a task's start until it was cleared up. Blocks.

#include <string>
#include <vector>

#include "base/result.h"

namespace drover::container {

/// For each task with a launch specification, the paths of its layers, lowest first. `tasks` is the folder of
/// the tasks' folders; none has no tasks. One that cannot be read is an Error: who knows what it needs.
Result<std::vector<std::vector<std::string>>> layers_in_use(const std::string& tasks);

}  // namespace drover::container

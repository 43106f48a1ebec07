#pragma once

// What tasks keep on the disk of the state folder. Blocks; thread safe.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/ports.h"

namespace drover {

/// engine::Ports::task_space, for a state folder.
std::map<std::string, Result<std::uint64_t>> task_space(const std::string& state,
                                                        const std::vector<engine::TaskProcesses>& tasks);

}  // namespace drover

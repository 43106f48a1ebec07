#pragma once

// Which tasks make GPUs work, by what the driver tells of the GPUs and of processes. Blocks; thread safe.

#include <set>
#include <string>
#include <vector>

#include "engine/ports.h"
#include "gpu/usage_sampler.h"

namespace drover {

/// engine::Ports::busy_tasks. `usage` is asked by nobody else: it tells what was done since it was asked.
std::set<std::string> busy_tasks(const std::vector<gpu::Device>& devices,
                                 const std::vector<engine::TaskProcesses>& tasks, gpu::UsageSampler& usage);

}  // namespace drover

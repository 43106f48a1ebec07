#pragma once

// Tasks that executors of frameworks' own run, as operators see them: as if each had a container of its own.
// Pure.

#include <memory>
#include <string>
#include <vector>

#include "control/state.h"

namespace drover::api::mesos {

/// Whether a task of ours is the container of such an executor.
bool is_executor(const control::TaskRecord& record);

/// By their ids, as long as their last update was not acknowledged. The id of each is that of the container.
std::vector<std::shared_ptr<const control::TaskRecord>> tasks_within(const control::State& state,
                                                                     const std::string& framework);

}  // namespace drover::api::mesos

#pragma once

// Folders of tasks that nobody knows: out of the way, and closed to all but root. Blocks.

#include <string>

#include "base/files.h"
#include "base/result.h"
#include "container/containerizer.h"

namespace drover::container {

/// In the folder of all tasks; no task's id begins so.
inline constexpr const char* kQuarantine = ".quarantine";

/// Containerizer::quarantine(): `tasks` is the folder of all.
Result<std::string> move_to_quarantine(const Directory& tasks, const std::string& task_id);
Containerizer::Quarantine quarantine_of(const Directory& tasks);

}  // namespace drover::container

#pragma once

// What is checked of tasks before they are accepted. Pure.

#include <vector>

#include "control/draft.h"

namespace drover::control {

/// Whether the owner of a task may ask for its priority, its queue, its ports and its privileges.
Status check_rights(const Draft& draft, const workload::Task& task);

/// Adds one task, the members of a gang by rank, or the tasks of an array to the queue. Refuses what is
/// wrong, what its owner may not ask for, and what can never run; the path of the error starts with
/// "/members/<rank>" where it is about one member of several.
Status submit(Draft& draft, const std::vector<workload::Task>& tasks);

/// Whether tasks like these, one or a gang by rank, would be accepted; ids are not looked at.
Status admissible(const Draft& draft, const std::vector<workload::Task>& tasks);

}  // namespace drover::control

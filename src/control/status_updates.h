#pragma once

// What frameworks are told of their tasks, whoever runs them. Pure.

#include <string>
#include <string_view>

#include "control/draft.h"

namespace drover::control {

/// Null when there is none, or it was removed.
const FrameworkRecord* living_framework(const Draft& draft, const std::string& id);
Failure no_such_framework(const std::string& id);

/// Whether nothing follows this state of Mesos.
bool is_terminal(std::string_view mesos);

/// An Error when a task of that id has not ended.
Status is_unused(const Draft& draft, const std::string& framework, const std::string& task_id);

/// How the end of a container reads to those who know Mesos; "" before it.
std::string message_of(const TaskRecord& record);
/// "REASON_CONTAINER_LIMITATION_MEMORY"; "" when nobody but the task itself is to blame.
std::string reason_of(const TaskRecord& record);

/// Tells the framework of the task, after what it has not acknowledged. One without a UUID is given one.
void add_update(Draft& draft, FrameworkTask& task, StatusUpdate update);

}  // namespace drover::control

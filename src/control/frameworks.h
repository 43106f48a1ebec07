#pragma once

// The durable part of the Mesos API: which frameworks there are, what they launched, and what they have yet
// to be told of it. Offers are not here, for they do not outlive a connection. Pure.

#include <string>
#include <vector>

#include "control/draft.h"

namespace drover::control {

/// A new framework, or one that comes back: `record` is its new description.
Status subscribe_framework(Draft& draft, const std::string& id, FrameworkRecord record);
/// Its connection ended. It is removed when it is not back in `patience`, or its failover timeout if that is
/// longer.
Status disconnect_framework(Draft& draft, const std::string& id, std::chrono::milliseconds patience);
/// Stops its tasks and forgets what it was to be told. The record stays as a removed one for kKeepEnded.
Status remove_framework(Draft& draft, const std::string& id);
/// Several tasks are a group: they start together. An Error means that none of them is launched.
Status launch_for_framework(Draft& draft, const std::vector<FrameworkLaunch>& launches);
/// An update that is not the oldest unacknowledged one of its task changes nothing: it was a duplicate.
Status acknowledge_update(Draft& draft, const std::string& framework, const std::string& task_id,
                          const std::string& uuid);

/// What the health check of a task found: its framework is told when that has changed, and the task is killed
/// after too many failures in a row.
void take_framework_check(Draft& draft, const CheckResult& result);

/// Removes frameworks that stayed away too long, and forgets those that were removed long ago.
void expire_frameworks(Draft& draft);
std::optional<TimePoint> next_framework_deadline(const State& state);

/// Makes the updates that follow from what the draft changed. Called last.
void notify_frameworks(Draft& draft);

/// The ids of the frameworks of one master: "<master>-0000", "<master>-0001", …
std::string next_framework_id(const State& state, const std::string& master);

/// What a task's state is called in Mesos.
std::string mesos_state(const TaskRecord& record, const FrameworkRecord& framework);

}  // namespace drover::control

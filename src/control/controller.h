#pragma once

// The state machine of tasks: decide(state, event, now) → what changes, and what is to be done. Pure: no
// clock, no file, no thread. The caller journals the changes first, then applies them, then carries out the
// actions. Every action is idempotent and keyed by the task, so it may be repeated after a
// crash.
//
// A preempted task is stopped, waits again with its old place in the order of arrival, and starts afresh;
// that of a framework has ended then. The members of a gang start together; when one of them fails or is
// stopped, the others are stopped.

#include <optional>
#include <string>
#include <vector>

#include "base/moment.h"
#include "control/event.h"
#include "control/state.h"

namespace drover::control {

/// An Error refuses the event whole: nothing changes. Events about tasks that are over or unknown change
/// nothing, so duplicates are harmless; only requests of people get an error for them.
Result<Outcome> decide(const State& state, const Event& event, Moment now);

/// Why a queued task waits: one clause each, never none.
std::vector<std::string> waiting_reasons(const State& state, const TaskRecord& record);

/// When the next Tick is due, by the clock that nobody sets: a task's time is up, or a service may try again.
std::optional<TimePoint> next_deadline(const State& state, Moment now = TimePoint{});

}  // namespace drover::control

#pragma once

// Tasks that start only after others have ended, or at a date. Pure.

#include <optional>
#include <string>

#include "control/draft.h"

namespace drover::control {

/// Whether `record`, which is about to be added, can ever start: kNotFound, kConflict. What it awaits that
/// has come already is taken out.
Status check_dependencies(const Draft& draft, TaskRecord& record);

/// Lets those go on that wait for what has just ended, and ends those that would wait in vain.
void settle_dependencies(Draft& draft);

/// Lets those go on whose time has come.
void release_due(Draft& draft);

/// Why a task that waits is held back, in words; none when it is not.
std::optional<std::string> why_held(const State& state, const TaskRecord& record);

/// When the first of those that wait for their time may go on, by the clock that nobody sets.
std::optional<TimePoint> next_release(const State& state, Moment now);

}  // namespace drover::control

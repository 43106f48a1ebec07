#pragma once

// When time alone makes something due. Pure.

#include <optional>

#include "base/moment.h"
#include "control/state.h"

namespace drover::control {

/// By the clock that nobody sets: when its time is up; none when it does not run or may run for ever.
std::optional<TimePoint> deadline_of(const TaskRecord& record);

/// As next_deadline() of a state in which there is nothing but what the outcome changed: all others were told
/// of when they changed, or at the last tick.
std::optional<TimePoint> next_deadline(const Outcome& outcome, Moment now = TimePoint{});

}  // namespace drover::control

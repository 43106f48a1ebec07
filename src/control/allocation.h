#pragma once

// What a task had for a while, from when it got it until it had it no more, or another share of it: of these
// accounts are made. What ends is told in the outcome of the event that ends it, so it is kept with that or
// not at all. Pure.

#include <optional>
#include <string_view>

#include "base/moment.h"
#include "control/record.h"

namespace drover::control {

/// By what the task had it no more.
enum class AllocationEnd {
  kFinished,
  kFailed,  ///< whether or not the task starts again
  kKilled,
  kLost,
  kPreempted,
  kPutBack,  ///< nothing of the task ran, and it waits again
  kResized,  ///< it goes on with another share
};
std::string_view to_string(AllocationEnd end);

/// How an attempt ended whose record does not say so.
struct AttemptEnd {
  AllocationEnd end{};
  Cause cause{};
  TimePoint at{};
};

struct Allocation {
  TaskRecord record;          ///< as it was at last while it had it
  TimePoint from{}, until{};  ///< by the clock that people see, if that had never been set in between
  AllocationEnd end{};
  Cause cause = Cause::kNone;
  std::optional<double> gpu_seconds_used;  ///< of whole GPUs; none when nobody measured it
};

/// Sets since when the task has what it has. `before`: null for a new one.
void keep_time(const TaskRecord* before, TaskRecord& after, Moment now);
/// What it had before and has no more; none when it had nothing, or has it still.
std::optional<Allocation> ended_allocation(const TaskRecord& before, const TaskRecord& after,
                                           const std::optional<AttemptEnd>& attempt, Moment now);
/// When it got what it has, by the clock that people see; `now` when nobody knows.
TimePoint held_since(const TaskRecord& record, Moment now);

}  // namespace drover::control

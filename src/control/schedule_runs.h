#pragma once

// Single runs of schedules: how one starts, how it is counted when it ended. Pure.

#include <string>
#include <string_view>

#include "control/draft.h"

namespace drover::control {

/// Starts an attempt, or says in the history why not. The schedule is there.
void start_run(Draft& draft, const std::string& name, const ScheduleRetry& attempt);

/// Says in the history that runs were left out; what is said again is said once, with its count.
void note_skipped(ScheduleRecord& record, TimePoint due, std::int64_t count, TimePoint now,
                  std::string_view why);

/// Counts it, and starts the schedules that waited for it. The schedule is there.
void count_success(Draft& draft, const std::string& name, TimePoint at);

}  // namespace drover::control

#pragma once

// Schedules over time (as Chronos' JobScheduler has them). Pure. Every function leaves the draft as it was
// when it returns an error.
//
// A run is a task whose origin is the schedule. Occurrences that passed are never looked at again
// (`reckoned_until`), whatever the clock does or how often the definition is sent: no run is started twice.
// What is due is started when it is at most `epsilon` late, else it is left out and the history says so.
// Only Tick starts runs at their times; next_due() says when it is needed.

#include <optional>
#include <string>

#include "control/draft.h"

namespace drover::control {

/// A new schedule, or a new definition of one: counts, history and runs stay, retries are given up.
Status define_schedule(Draft& draft, workload::Schedule schedule);
/// Its runs are stopped. Its children are attached to its parents; those that would have none get its times.
Status remove_schedule(Draft& draft, const std::string& name);
/// Once more, now. Refused when it is disabled; left out when it runs already and may not overlap.
Status run_schedule(Draft& draft, const std::string& name, const std::string& arguments);
/// Stops its runs and gives up its retries.
Status kill_schedule(Draft& draft, const std::string& name);
/// As if it had just run and succeeded.
Status mark_schedule(Draft& draft, const std::string& name);
/// So many more elements were processed by a run that is known by its origin_id.
Status add_elements(Draft& draft, const std::string& name, const std::string& run, std::int64_t count);

/// Starts what is due by the state below the draft: called before anything is changed.
void fire_schedules(Draft& draft);
/// Counts the runs that ended in this draft, plans retries, and starts the schedules that waited for them.
void follow_runs(Draft& draft);

std::optional<TimePoint> next_due(const State& state);

/// How long a run waits for its next attempt: 5 s after the first failed one, then twice as long each time, a
/// minute at most (which is Chronos' --failure_retry_delay).
std::chrono::milliseconds retry_delay(int failed_attempt);

}  // namespace drover::control

#pragma once

// Jobs and what became of them as Chronos shows them (wire: JobSerializer of Chronos 3). Pure.

#include <optional>
#include <string>

#include "base/units.h"
#include "control/schedule_record.h"
#include "control/state.h"

namespace drover::api::chronos {

/// In Chronos' order; one line. GPUs only when it has some.
std::string encode_job(const control::ScheduleRecord& record);

/// The schedule with what is left of it: "R/2018-03-06T23:00:00.000Z/PT24H"; "" of one that has parents.
std::string schedule_text(const control::ScheduleRecord& record);

/// "2018-03-05T23:00:00.000Z", or "" for never.
std::string time_text(const std::optional<TimePoint>& time);

/// How it went last: "fresh", "success" or "failure".
std::string status_of(const control::ScheduleRecord& record);
/// "idle", "queued" or "2 running".
std::string state_of(const control::State& state, const control::ScheduleRecord& record);

/// {"histogram": …, "taskStatHistory": [ … ]}, the newest run first; times as Chronos has them, in UTC. With
/// "skippedRuns": [{"lastDue", "count", "reason"}] when there are some, the newest first.
std::string encode_statistics(const control::State& state, const control::ScheduleRecord& record,
                              TimePoint now);

/// Of how long its runs took, in milliseconds; 0 when there were none. `part` is 0 … 1.
double percentile(const control::ScheduleRecord& record, double part);
double mean(const control::ScheduleRecord& record);

}  // namespace drover::api::chronos

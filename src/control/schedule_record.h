#pragma once

// Schedules as the state keeps them. Values.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "workload/schedule.h"

namespace drover::control {

/// One attempt at a run.
struct ScheduleRun {
  std::string task_id;    ///< of the task's record
  std::string origin_id;  ///< as Chronos names it: "ct:<milliseconds>:<attempt>:<schedule>:<arguments>"
  int attempt = 0;        ///< 0 is the first
  TimePoint due{};        ///< of the run
  std::string arguments;

  bool operator==(const ScheduleRun&) const = default;
};

/// A run that failed and will be tried again.
struct ScheduleRetry {
  TimePoint not_before{};
  int attempt = 1;
  TimePoint due{};
  std::string arguments;

  bool operator==(const ScheduleRetry&) const = default;
};

enum class RunOutcome { kSucceeded, kFailed, kKilled, kLost, kSkipped };

struct ScheduleEntry {
  RunOutcome outcome{};
  ScheduleRun run;         ///< of one that was skipped: only `due`
  std::int64_t count = 1;  ///< so many skipped runs in one entry, `run.due` is the last of them
  std::optional<TimePoint> started_at;
  TimePoint at{};  ///< when it ended or was skipped
  std::string message;

  bool operator==(const ScheduleEntry&) const = default;
};

struct ScheduleRecord {
  workload::Schedule schedule;
  std::int64_t next = 0;               ///< index of the next occurrence; 0 of cron
  std::optional<TimePoint> due;        ///< its time; none when there is no further one, or it has parents
  TimePoint reckoned_until{};          ///< nothing before or at this time is ever run again
  std::vector<ScheduleRun> active;     ///< runs that have not ended
  std::vector<ScheduleRetry> retries;  ///< that are still to come
  std::set<std::string> succeeded;     ///< parents that have succeeded since it ran last

  std::uint64_t successes = 0;
  std::uint64_t errors = 0;  ///< runs of which the last attempt failed
  std::uint64_t errors_since_success = 0;
  std::optional<TimePoint> last_success;
  std::optional<TimePoint> last_error;
  std::deque<ScheduleEntry> history;             ///< the oldest first; at most kMostHistory
  std::vector<std::int64_t> durations;           ///< of the last runs that succeeded, in milliseconds
  std::map<std::string, std::int64_t> elements;  ///< what runs say that they have processed, by origin_id

  bool operator==(const ScheduleRecord&) const = default;
};
/// When it wants to be looked at: at its next time, or for a retry.
inline std::optional<TimePoint> next_time(const ScheduleRecord& record) {
  auto next = record.due;
  for (const auto& retry : record.retries)
    if (!next || retry.not_before < *next) next = retry.not_before;
  return next;
}

inline constexpr std::size_t kMostHistory = 20;
inline constexpr std::size_t kMostDurations = 100;
/// Ended tasks of a schedule, with their sandboxes, that are kept.
inline constexpr std::size_t kKeptRuns = 10;

}  // namespace drover::control

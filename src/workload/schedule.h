#pragma once

// A schedule: a task that runs again and again, at its times or after other schedules (as in Chronos).
// Values; what they mean over time is control's.

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "base/result.h"
#include "workload/repetition.h"
#include "workload/task.h"

namespace drover::workload {

struct Schedule {
  std::string name;        ///< [A-Za-z0-9_.-]+, unique
  Task task;               ///< what each run is; without id and origin
  bool shell = true;       ///< the last word of the command is a script: arguments of a run are put behind it
  std::string repetition;  ///< as Repetition reads it: cron, or with a start; "" when it has parents
  std::string time_zone;   ///< name; "" for the offset of the start
  /// It runs when all of these have succeeded since it ran last.
  std::set<std::string> parents;
  int retries = 2;          ///< further attempts after one that failed
  bool concurrent = false;  ///< whether runs may overlap
  bool disabled = false;    ///< its times pass without a run
  bool soft_error = false;  ///< when it has failed, those that wait for it run all the same
  /// A run that is later than this, because the daemon was not there, is left out.
  std::chrono::milliseconds epsilon{60'000};
  std::string webhook;  ///< URL that is told how each run ended (workload/webhook.h); "" for none
  /// The normalised definition as the API that it came by shows it, a JSON object as text, without what is
  /// above and without what happened.
  std::string definition;

  bool operator==(const Schedule&) const = default;
};

bool is_schedule_name(std::string_view text);

/// As stored in the journal; decode_schedule(encode(schedule)) == schedule.
nlohmann::json encode(const Schedule& schedule);
Result<Schedule> decode_schedule(const nlohmann::json& value);

}  // namespace drover::workload

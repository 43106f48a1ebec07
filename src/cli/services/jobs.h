#pragma once

// How a job of Chronos' API is doing, in the words of a table. Pure.

#include <nlohmann/json.hpp>
#include <string>

#include "base/units.h"

namespace drover::cli {

struct JobState {
  std::string state;    ///< "idle", "queued", "1 running", "disabled"
  std::string last;     ///< "succeeded 2h ago", "failed 5m ago"; "never ran"
  std::string next;     ///< "2030-01-31T02:30:00.000Z"; "" when there is none
  std::string why_not;  ///< why it does not run: "it is disabled", "after nightly"; "" when it does
};

/// `job` as the API shows it; `state` as the summary says it; `waits` is why its run waits, where that is
/// known. `now` is for what is told as so long ago, and for when cron is next.
JobState job_state(const nlohmann::json& job, const std::string& state, const std::string& waits,
                   TimePoint now);

}  // namespace drover::cli

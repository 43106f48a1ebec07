#pragma once

// Jobs as they were recorded: when they came, what they asked for, how long they ran.

#include <chrono>
#include <string>
#include <vector>

#include "base/units.h"
#include "placement/schedule.h"

namespace drover::bench {

struct RecordedJob {
  placement::Job job;  ///< without a time limit; its sequence is its position
  TimePoint arrival{};
  std::chrono::milliseconds duration{};
};

/// Reads a list like `openb_pod_list_default.csv`, which has times, in order of arrival. Pods that were never
/// scheduled or never ended ran for an unknown time, and are left out. Constraints on models are dropped: the
/// jobs are replayed on one kind of node.
Result<std::vector<RecordedJob>> read_recorded_jobs(const std::string& path);

}  // namespace drover::bench

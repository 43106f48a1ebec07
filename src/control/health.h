#pragma once

// What the checks of instances have found. Not journaled: after a restart everything is checked again. Pure.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/record.h"
#include "workload/service.h"

namespace drover::control {

/// One health check of one task.
struct CheckHealth {
  bool alive = false;
  int consecutive_failures = 0;
  std::optional<TimePoint> first_success;
  std::optional<TimePoint> last_success;
  std::optional<TimePoint> last_failure;
  std::string last_failure_cause;

  bool operator==(const CheckHealth&) const = default;
};

/// The last answer to a readiness check.
struct ReadinessAnswer {
  int status = 0;
  std::string content_type;
  std::string body;

  bool operator==(const ReadinessAnswer&) const = default;
};

struct TaskHealth {
  std::vector<std::optional<CheckHealth>>
      checks;  ///< by the service's health checks; none: nothing is known yet
  bool ready = false;
  std::optional<ReadinessAnswer> answer;

  bool operator==(const TaskHealth&) const = default;
};

/// true: every check says that it is well; false: one says that it is not; none: not all have told yet, or
/// there are none.
std::optional<bool> alive(const TaskHealth* health, const workload::Service& service);

/// What a check found. `check` is the index of a health check; -1: the readiness check.
struct CheckResult {
  std::string task;
  int check = 0;
  bool passed = false;
  std::string why;  ///< when it did not: one clause
  /// Of the command, or of HTTP; of a connection 1, and 0 where there is none. None: no answer.
  std::optional<int> status = std::nullopt;
  std::optional<ReadinessAnswer> answer;
  TimePoint at{};
};

/// What is known of a check after another result. Failures in the grace period do not count before the first
/// success.
CheckHealth after(const std::optional<CheckHealth>& before, const CheckResult& result,
                  const workload::HealthCheck& check, std::optional<TimePoint> started_at);
/// Whether the task is to be killed for it.
bool exhausted(const CheckHealth& health, const workload::HealthCheck& check);

}  // namespace drover::control

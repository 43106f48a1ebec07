#include "control/health.h"

#include <algorithm>

namespace drover::control {

std::optional<bool> alive(const TaskHealth* health, const workload::Service& service) {
  if (service.health_checks.empty() || health == nullptr) return std::nullopt;
  const auto& checks = health->checks;
  if (std::ranges::any_of(checks, [](const auto& check) { return check && !check->alive; })) return false;
  const bool complete = checks.size() == service.health_checks.size() &&
                        std::ranges::all_of(checks, [](const auto& check) { return check.has_value(); });
  return complete ? std::optional(true) : std::nullopt;
}

CheckHealth after(const std::optional<CheckHealth>& before, const CheckResult& result,
                  const workload::HealthCheck& check, std::optional<TimePoint> started_at) {
  auto found = before.value_or(CheckHealth{});
  found.alive = result.passed;
  if (result.passed) {
    found.consecutive_failures = 0;
    if (!found.first_success) found.first_success = result.at;
    found.last_success = result.at;
    return found;
  }
  const bool in_grace = !found.first_success && started_at && result.at < *started_at + check.grace_period;
  if (!in_grace) ++found.consecutive_failures;
  found.last_failure = result.at;
  found.last_failure_cause = result.why;
  return found;
}

bool exhausted(const CheckHealth& health, const workload::HealthCheck& check) {
  return check.max_consecutive_failures > 0 && health.consecutive_failures >= check.max_consecutive_failures;
}

}  // namespace drover::control

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

}  // namespace drover::control

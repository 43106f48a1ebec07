#pragma once

// Conditions in the status of objects, as metav1.Condition has them. Pure.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/units.h"

namespace drover::kube::scheduler {

struct Condition {
  std::string type;
  bool holds = false;
  std::string reason;   ///< for programs, one word
  std::string message;  ///< for people; loses its middle when it is longer than API servers take

  bool operator==(const Condition&) const = default;
};

/// How it is to stand among `object`'s conditions from `now` on, with the time of its last change; nullopt
/// when it stands there like this.
std::optional<nlohmann::json> changed_condition(const nlohmann::json& object, const Condition& condition,
                                                TimePoint now);

}  // namespace drover::kube::scheduler

#pragma once

// What would let tasks start now. Pure.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "control/state.h"

namespace drover::control {

struct Remedy {
  std::string text;  ///< "ask for 3 GPUs"
  /// What the task's definition, or that of each member, would say otherwise, by its fields; null: nothing of
  /// it. Empty when that is not what helps.
  nlohmann::json changes = nlohmann::json::object();

  bool operator==(const Remedy&) const = default;
};

/// What the owner of one task, or of a gang by rank, that does not start now could ask for instead, so that
/// it did: each remedy has been tried on the whole queue. The tasks may wait already; they are then asked for
/// anew. Where nothing that is tried helps, what they wait for, if that can be said. The more tasks wait, the
/// less is tried: it would take long.
std::vector<Remedy> remedies(const State& state, const std::vector<workload::Task>& tasks, TimePoint now);

}  // namespace drover::control

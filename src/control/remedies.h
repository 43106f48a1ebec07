#pragma once

// What would let tasks start now. Pure.

#include <string>
#include <vector>

#include "control/state.h"

namespace drover::control {

/// What the owner of one task, or of a gang by rank, could ask for instead, so that it started at once: each
/// remedy has been tried on the whole queue. The tasks may wait already; they are then asked for anew. None
/// when nothing that is tried helps, and when very many tasks wait: it would take long.
std::vector<std::string> remedies(const State& state, const std::vector<workload::Task>& tasks,
                                  TimePoint now);

}  // namespace drover::control

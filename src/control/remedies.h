#pragma once

// What would let tasks start now. Pure.

#include <string>
#include <vector>

#include "control/state.h"

namespace drover::control {

/// What the owner of one task, or of a gang by rank, that does not start now could ask for instead, so that
/// it did: each remedy has been tried on the whole queue. The tasks may wait already; they are then asked for
/// anew. Where nothing that is tried helps, what they wait for, if that can be said. The more tasks wait, the
/// less is tried: it would take long.
std::vector<std::string> remedies(const State& state, const std::vector<workload::Task>& tasks,
                                  TimePoint now);

}  // namespace drover::control

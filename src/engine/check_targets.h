#pragma once

// Which checks the services ask for now, and what their results mean to control. Pure.

#include <vector>

#include "control/health.h"
#include "control/state.h"
#include "engine/checks/checks.h"

namespace drover::engine {

/// Of every instance that runs: its health checks, and its readiness check until it is ready; and the health
/// checks of frameworks' tasks. Checks go to the ports of the machine, which are forwarded where a task has a
/// network of its own.
std::vector<CheckTarget> targets_of(const control::State& state);

/// Whether the outcome may have changed them.
bool changes_targets(const control::Outcome& outcome);

control::CheckResult result_of(const CheckResult& result, TimePoint at);

}  // namespace drover::engine

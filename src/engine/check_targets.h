#pragma once

// Which checks the services ask for now, and what their results mean to control. Pure.

#include <set>
#include <string>
#include <vector>

#include "control/health.h"
#include "control/state.h"
#include "engine/checks/checks.h"

namespace drover::engine {

/// Of an instance that runs: its health checks, and its readiness check until it is ready; the checks of
/// a framework's task; none of any other. Checks go to the task's own address, or else to the ports of the
/// machine, which are forwarded where a task has a network of its own.
std::vector<CheckTarget> targets_of(const control::State& state, const std::string& task);

/// The tasks whose targets the outcome may have changed; `state` is that after it.
std::set<std::string> tasks_to_check(const control::State& state, const control::Outcome& outcome);

control::CheckResult result_of(const CheckResult& result, TimePoint at);

}  // namespace drover::engine

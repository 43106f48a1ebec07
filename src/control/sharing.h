#pragma once

// Who holds how much of what the rules of sharing limit. Pure.

#include <string>
#include <vector>

#include "control/state.h"

namespace drover::control {

/// Whether it counts for this queue: it is in it, or in one below it.
bool is_in(const workload::Task& task, const std::string& queue);
bool is_of(const workload::Task& task, const placement::Subject& subject);
/// What these hold together while they run. GPUs of a group count once.
placement::ResourceAmounts held_by(const placement::Cluster& cluster,
                                   const std::vector<const workload::Task*>& tasks);
/// What running work of this queue and its children holds. GPUs of a group count once.
placement::ResourceAmounts used_in(const State& state, const std::string& queue);
/// What running work of this user, or in this namespace, holds.
placement::ResourceAmounts used_by(const State& state, const placement::Subject& subject);
/// What the task or its whole gang asks for.
placement::ResourceAmounts wanted_by(const State& state, const TaskRecord& record);

}  // namespace drover::control

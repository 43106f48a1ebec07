#pragma once

// What Mesos and Marathon call agents: this machine, or each node of a cluster. Pure.

#include <string>

#include "control/state.h"

namespace drover::control {

/// The agent of one machine, or of the host of this name. `journal`: the id of the journal.
std::string agent_id(const std::string& journal, const std::string& host = "");
/// The host of that agent; "" when it is of one machine, or of another journal.
std::string host_of_agent(const std::string& journal, const std::string& agent);

/// What a node of a cluster is called as a host: its attribute "hostname".
std::string host_name(const placement::Node& node);

/// The host of the agent whose offer a framework's task was launched with; "" on one machine.
std::string host_of(const workload::Task& task);

/// A framework's task is of the agent whose offer it was launched with, others are of that of their node; the
/// first one's where a cluster has yet to choose.
std::string agent_of(const State& state, const TaskRecord& record);

bool is_agent(const State& state, const std::string& id);

}  // namespace drover::control

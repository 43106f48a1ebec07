#pragma once

// The agents that frameworks and operators are told of: this machine, or each node of a cluster. On the
// control strand.

#include <map>
#include <string>
#include <vector>

#include "api/mesos/master.h"

namespace drover::api::mesos {

struct Agent {
  std::string id;
  std::string hostname;
  engine::NodeView node;
  std::map<std::string, std::vector<std::string>> attributes;
};

std::vector<Agent> agents_of(const engine::Api& daemon, const MasterOptions& options);

/// What it has, with what is taken.
control::ResourceAmounts total_of(const engine::NodeView& node);

}  // namespace drover::api::mesos

#pragma once

// Which tasks made GPUs work, as the agents of the nodes tell where their pods run (node_agents.h). Of which
// nothing is known, because a node does not answer, or does not tell of the pod, may have. Not thread safe;
// blocks.

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/log_once.h"
#include "pods/node_agents.h"
#include "pods/pod_sandbox.h"

namespace drover::pods {

class BusyPods {
 public:
  /// `agents` outlives it. `log` gets a sentence when nodes do not answer.
  BusyPods(NodeAgents& agents, std::function<void(const std::string&)> log)
      : agents_(agents), trouble_(std::move(log)) {}

  /// Which of these did since it was asked last, by where the pod of each was; the latest counts.
  std::set<std::string> find(const std::map<std::string, std::vector<SandboxPlace>>& tasks);

 private:
  using Clock = std::chrono::steady_clock;

  NodeAgents& agents_;
  LogOnce trouble_;
  std::map<std::string, Clock::time_point> told_at_;  ///< by node, when it answered last
};

}  // namespace drover::pods

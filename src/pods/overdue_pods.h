#pragma once

// Ends pods whose time is over while their containers run. A kubelet that has begun to stop a container gives
// it all the time that it had then, whatever the API server is told later. So the agent of the node is asked,
// who kills the containers (node_agents.h). Thread safe.

#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "base/log_once.h"
#include "pods/node_agents.h"
#include "pods/pod_view.h"

namespace drover::pods {

class OverduePods {
 public:
  /// `agents` outlives it. `log` gets a sentence when nodes do not answer; may be empty.
  OverduePods(NodeAgents& agents, std::function<void(const std::string& sentence)> log);
  /// Waits for what is being asked.
  ~OverduePods();
  OverduePods(const OverduePods&) = delete;
  OverduePods& operator=(const OverduePods&) = delete;

  /// Asks once, and does not wait for it. What is being asked already is not asked again.
  void end(const PodView& pod);

 private:
  void ask(const std::string& node, const std::string& uid);

  NodeAgents& agents_;
  const std::function<void(const std::string&)> log_;
  std::mutex mutex_;                         ///< of what follows
  std::set<std::string> asked_;              ///< uids of pods that are being ended
  std::map<std::string, LogOnce> troubles_;  ///< by node
  boost::asio::thread_pool threads_;  ///< of its own: a node that does not answer holds up nothing else
};

}  // namespace drover::pods

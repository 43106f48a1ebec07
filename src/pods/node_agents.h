#pragma once

// Asks the agents of nodes about the sandboxes that they keep (kube/sandboxes). An agent opens no port: a
// command in its own pod joins what the API server carries to its socket. One connection a node is kept as
// long as it is used, and what is asked of a node goes on it one after the other. Each question has ten
// seconds, in which it waits for its turn too; a node that did not answer is left alone for a while, so that
// nobody waits for it again and again. Thread safe; blocks.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "kube/client/api.h"
#include "kube/client/config.h"
#include "kube/sandboxes/client.h"

namespace drover::pods {

/// Who asks many nodes asks so many at once.
inline constexpr std::size_t kNodesAtOnce = 8;

/// To one agent, as stream sockets that do not block.
class AgentConnection {
 public:
  virtual ~AgentConnection() = default;
  virtual int input() const = 0;
  virtual int output() const = 0;
};

struct AgentLimits {
  std::chrono::milliseconds answer{10'000};
  std::chrono::milliseconds idle{30'000};    ///< a connection that nobody has used for so long is ended
  std::chrono::milliseconds spared{10'000};  ///< a node that did not answer is not asked again before
};

class NodeAgents {
 public:
  using Connect = std::function<Result<std::unique_ptr<AgentConnection>>(const std::string& node,
                                                                         std::chrono::milliseconds patience)>;

  explicit NodeAgents(Connect connect, AgentLimits limits = {});
  ~NodeAgents();

  /// For what asks the agent of one node. kUnavailable or kTimeout when it does not answer.
  kube::AskAgent agent(const std::string& node);
  /// What the sandboxes of these pods take up there, by their uids. What a node said last, where it does not
  /// answer.
  std::map<std::string, std::uint64_t> sizes(const std::string& node);

 private:
  struct Node;

  std::shared_ptr<Node> find(const std::string& name);
  Result<kube::WireAnswer> ask(Node& node, const kube::WireRequest& request);
  void end_idle(const std::stop_token& stop);

  const Connect connect_;
  const AgentLimits limits_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Node>> nodes_;  ///< by name
  std::jthread thread_;
};

/// By commands in the pods of agents: those in this namespace with the label kube::kAgentLabel. `api`
/// outlives it.
NodeAgents::Connect connect_by_exec(kube::Api& api, kube::ServerConfig server, std::string name_space);

}  // namespace drover::pods

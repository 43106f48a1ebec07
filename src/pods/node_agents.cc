#include "pods/node_agents.h"

#include <fmt/format.h>

#include <condition_variable>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "kube/client/remote_command.h"
#include "kube/sandboxes/names.h"

namespace drover::pods {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kLookAtIdle{5};
constexpr std::chrono::seconds kSizesFresh{10};

class ExecConnection final : public AgentConnection {
 public:
  explicit ExecConnection(std::unique_ptr<kube::RemoteCommand> command) : command_(std::move(command)) {}
  int input() const override { return command_->output(); }
  int output() const override { return command_->input(); }

 private:
  std::unique_ptr<kube::RemoteCommand> command_;
};

struct AgentPod {
  std::string name, container;
};

Result<AgentPod> find_agent(kube::Api& api, const std::string& name_space, const std::string& node,
                            std::chrono::milliseconds patience) {
  DROVER_TRY(const auto pods,
             api.send({.verb = "list",
                       .path = {kube::kPods, name_space},
                       .query = {{"labelSelector", fmt::format("{}=true", kube::kAgentLabel)},
                                 {"fieldSelector", "spec.nodeName=" + node}},
                       .patience = patience}));
  std::optional<AgentPod> found;
  std::string begun;
  for (const auto& pod : pods.value("items", nlohmann::json::array())) {
    // During an upgrade there are two: the older one serves until it ends.
    if (kube::text_at(pod, "/status/phase") != "Running" || pod.at("metadata").contains("deletionTimestamp"))
      continue;
    auto created = kube::text_at(pod, "/metadata/creationTimestamp");
    if (found && created >= begun) continue;
    found = {kube::text_at(pod, "/metadata/name"), kube::text_at(pod, "/spec/containers/0/name")};
    begun = std::move(created);
  }
  if (found) return *found;
  return fail(ErrorKind::kUnavailable,
              fmt::format("No agent of ours runs on node '{}' in namespace '{}'", node, name_space),
              "'drover kube node' with the role sandboxes is to run there, in a pod");
}

}  // namespace

struct NodeAgents::Node {
  explicit Node(std::string called) : name(std::move(called)) {}

  const std::string name;
  std::timed_mutex mutex;  ///< of what follows: whoever has it, asks
  std::unique_ptr<AgentConnection> connection;
  std::optional<kube::Wire> wire;
  steady_clock::time_point used;
  std::optional<Error> trouble;
  steady_clock::time_point spared_until;

  std::mutex sizes_mutex;  ///< of what follows
  std::map<std::string, std::uint64_t> sizes;
  steady_clock::time_point sizes_at;

  void disconnect() {
    wire.reset();
    connection.reset();
  }
};

NodeAgents::NodeAgents(Connect connect, AgentLimits limits)
    : connect_(std::move(connect)),
      limits_(limits),
      thread_([this](const std::stop_token& stop) { end_idle(stop); }) {}

NodeAgents::~NodeAgents() = default;

std::shared_ptr<NodeAgents::Node> NodeAgents::find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  auto& node = nodes_[name];
  if (!node) node = std::make_shared<Node>(name);
  return node;
}

kube::AskAgent NodeAgents::agent(const std::string& node) {
  return [this, found = find(node)](const kube::WireRequest& request) { return ask(*found, request); };
}

Result<kube::WireAnswer> NodeAgents::ask(Node& node, const kube::WireRequest& request) {
  const auto deadline = steady_clock::now() + limits_.answer;
  const std::unique_lock lock(node.mutex, deadline);
  const auto silent = [&](Error error) {
    error.kind = ErrorKind::kUnavailable;
    return Failure(
        context(std::move(error), fmt::format("Node '{}' does not show its sandboxes", node.name)));
  };
  if (!lock) return silent({ErrorKind::kTimeout, "others wait for it already", "", ""});
  if (node.trouble && steady_clock::now() < node.spared_until) return silent(*node.trouble);
  node.trouble.reset();
  // A connection that was there already may have ended meanwhile, and all may be asked twice.
  for (bool is_fresh = false;; is_fresh = true) {
    Status done;
    if (!node.connection) {
      is_fresh = true;
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
      auto made = connect_(node.name, left);
      if (made) {
        node.connection = std::move(*made);
        node.wire.emplace(node.connection->input(), node.connection->output());
      } else {
        done = Failure(made.error());
      }
    }
    if (done) done = node.wire->send(request, deadline);
    if (done) {
      auto answer = node.wire->receive_answer(deadline);
      node.used = steady_clock::now();
      if (answer) return answer;
      done = Failure(answer.error());
    }
    node.disconnect();
    if (!is_fresh && steady_clock::now() < deadline) continue;
    node.trouble = done.error();
    node.spared_until = steady_clock::now() + limits_.spared;
    return silent(done.error());
  }
}

std::map<std::string, std::uint64_t> NodeAgents::sizes(const std::string& name) {
  const auto node = find(name);
  {
    const std::lock_guard lock(node->sizes_mutex);
    if (steady_clock::now() < node->sizes_at + kSizesFresh) return node->sizes;
    node->sizes_at = steady_clock::now();
  }
  auto told = kube::sandbox_sizes(agent(name));
  const std::lock_guard lock(node->sizes_mutex);
  if (told) node->sizes = std::move(*told);
  return node->sizes;
}

void NodeAgents::end_idle(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  const auto pause = std::min<std::chrono::milliseconds>(kLookAtIdle, limits_.idle);
  while (!stop.stop_requested()) {
    wake.wait_for(lock, stop, pause, [] { return false; });
    std::vector<std::shared_ptr<Node>> nodes;
    {
      const std::lock_guard of_all(mutex_);
      for (const auto& [name, node] : nodes_) nodes.push_back(node);
    }
    for (const auto& node : nodes) {
      const std::unique_lock own(node->mutex, std::try_to_lock);
      if (own && node->connection && steady_clock::now() > node->used + limits_.idle) node->disconnect();
    }
  }
}

NodeAgents::Connect connect_by_exec(kube::Api& api, kube::ServerConfig server, std::string name_space) {
  return [&api, server = std::move(server), name_space = std::move(name_space)](
             const std::string& node,
             std::chrono::milliseconds patience) -> Result<std::unique_ptr<AgentConnection>> {
    const auto end = steady_clock::now() + patience;
    DROVER_TRY(const auto pod, find_agent(api, name_space, node, patience));
    DROVER_TRY(
        auto command,
        kube::RemoteCommand::start(
            server, {.name_space = name_space,
                     .pod = pod.name,
                     .container = pod.container,
                     .command = {"/usr/bin/drover", "kube", "sandboxes"},
                     .opening = std::chrono::ceil<std::chrono::milliseconds>(end - steady_clock::now())}));
    return std::make_unique<ExecConnection>(std::move(command));
  };
}

}  // namespace drover::pods

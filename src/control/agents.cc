#include "control/agents.h"

#include <algorithm>

namespace drover::control {
namespace {

constexpr const char* kHostName = "hostname";  // among attributes

}  // namespace

std::string agent_id(const std::string& journal, const std::string& host) {
  return host.empty() ? journal + "-S0" : journal + "-S-" + host;
}

std::string host_of_agent(const std::string& journal, const std::string& agent) {
  const auto before = agent_id(journal, " ");
  const auto length = before.size() - 1;
  return agent.size() > length && agent.compare(0, length, before, 0, length) == 0 ? agent.substr(length)
                                                                                   : "";
}

std::string host_name(const placement::Node& node) {
  const auto found = node.attributes.find(kHostName);
  return found != node.attributes.end() && !found->second.empty() ? found->second.front() : node.name;
}

std::string host_of(const workload::Task& task) {
  if (task.origin.kind == workload::OriginKind::kFramework)
    for (const auto& [name, any_of] : task.resources.attributes)
      if (name == kHostName && !any_of.empty()) return any_of.front();
  return "";
}

std::string agent_of(const State& state, const TaskRecord& record) {
  const auto& journal = state.journal_id;
  if (!state.placed_by_others) return agent_id(journal);
  if (const auto host = host_of(record.task); !host.empty()) return agent_id(journal, host);
  const auto* node = record.node.empty() ? nullptr : state.cluster.node(record.node);
  return agent_id(journal, node != nullptr ? host_name(*node) : record.node);
}

bool is_agent(const State& state, const std::string& id) {
  if (!state.placed_by_others) return id == agent_id(state.journal_id);
  const auto host = host_of_agent(state.journal_id, id);
  return !host.empty() && std::ranges::any_of(state.cluster.nodes(), [&](const auto& name) {
    return name != state.node && host_name(*state.cluster.node(name)) == host;
  });
}

}  // namespace drover::control

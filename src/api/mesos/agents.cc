#include "api/mesos/agents.h"

#include "control/agents.h"
#include "gpu/attributes.h"

namespace drover::api::mesos {

std::vector<Agent> agents_of(const engine::Api& daemon, const MasterOptions& options) {
  const auto& state = daemon.state();
  if (!state.placed_by_others)
    return {
        {control::agent_id(state.journal_id), options.hostname, daemon.node(), state.machine().attributes}};
  std::vector<Agent> agents;
  for (auto& [view, inventory] : daemon.machines()) {
    const auto& node = *state.cluster.node(view.name);
    const auto host = control::host_name(node);
    auto attributes = gpu::attributes_of(inventory);
    attributes.insert(node.attributes.begin(), node.attributes.end());
    agents.push_back(
        {control::agent_id(state.journal_id, host), host, std::move(view), std::move(attributes)});
  }
  return agents;
}

control::ResourceAmounts total_of(const engine::NodeView& node) {
  return {node.gpus_total,
          node.milli_cpus_total,
          node.memory_bytes_total,
          node.disk_bytes,
          {{node.port_begin, node.port_end}}};
}

}  // namespace drover::api::mesos

// What tools read that count: roles, and the summary of the state.

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api/mesos/operator.h"
#include "api/mesos/views.h"
#include "control/frameworks.h"

namespace drover::api::mesos {
namespace {

using nlohmann::json;

constexpr std::array kStates = {"TASK_STAGING",  "TASK_STARTING", "TASK_RUNNING",     "TASK_KILLING",
                                "TASK_FINISHED", "TASK_KILLED",   "TASK_FAILED",      "TASK_LOST",
                                "TASK_ERROR",    "TASK_DROPPED",  "TASK_UNREACHABLE", "TASK_GONE"};

std::map<std::string, int> none_of_any_state() {
  std::map<std::string, int> counts;
  for (const auto* name : kStates) counts[name] = 0;
  return counts;
}

/// Of a framework, or of an agent.
struct TaskCounts {
  std::map<std::string, int> by_state = none_of_any_state();
  std::set<std::string> alive;  ///< the agents, or the frameworks, of those that have not ended

  void add(const std::string& state, bool is_alive, const std::string& whose) {
    ++by_state[state];
    if (is_alive) alive.insert(whose);
  }
};

json view_role(const std::string& name, const SeenRole& role) {
  auto resources = role.allocated;
  resources += role.offered;
  return {{"name", name},
          {"weight", 1.0},
          {"frameworks", role.frameworks},
          {"resources", view(resources)},
          {"allocated", view(role.allocated)},
          {"offered", view(role.offered)},
          {"reserved", json::object()},
          {"quota", {{"role", name}, {"limit", json::object()}, {"guarantee", json::object()}}}};
}

}  // namespace

std::map<std::string, SeenRole> roles_for(const Snapshot& snapshot) {
  std::map<std::string, SeenRole> roles{{"*", {}}};
  for (const auto& framework : frameworks_for(snapshot, false)) {
    bool first = true;
    for (const auto& name : roles_of(framework.record)) {
      auto& role = roles[name];
      role.frameworks.push_back(framework.id);
      // It is not kept for which of several roles a task was accepted: the first stands for all.
      if (first) role.allocated += framework.used;
      first = false;
    }
    for (const auto& [offer_id, offer] : snapshot.offers)
      if (offer.framework == framework.id) roles[offer.role].offered += offer.amounts;
  }
  return roles;
}

Result<Response> write_roles(const Snapshot& snapshot, const Request&) {
  json views = json::array();
  for (const auto& [name, role] : roles_for(snapshot)) views.push_back(view_role(name, role));
  return compact({{"roles", std::move(views)}});
}

Result<Response> write_state_summary(const Snapshot& snapshot, const Request&) {
  std::map<std::string, TaskCounts> by_agent;
  json frameworks = json::array();
  for (const auto& framework : frameworks_for(snapshot, false)) {
    TaskCounts counts;
    for (const auto* task : framework.tasks) {
      const auto agent = control::agent_of(*snapshot.state, *task);
      const auto state = control::mesos_state(*task, framework.record);
      const bool alive = !control::is_final(task->state);
      counts.add(state, alive, agent);
      by_agent[agent].add(state, alive, framework.id);
    }
    auto view = view_framework(framework);
    view.update(json(counts.by_state));
    view["slave_ids"] = counts.alive;
    frameworks.push_back(std::move(view));
  }
  json slaves = json::array();
  for (const auto& seen : agents_in(snapshot)) {
    const auto& counts = by_agent[seen.agent.id];
    auto slave = view_slave(snapshot, seen);
    slave.update(json(counts.by_state));
    slave["framework_ids"] = counts.alive;
    slaves.push_back(std::move(slave));
  }
  return compact({{"hostname", snapshot.options.hostname},
                  {"cluster", ""},
                  {"slaves", std::move(slaves)},
                  {"frameworks", std::move(frameworks)}});
}

}  // namespace drover::api::mesos

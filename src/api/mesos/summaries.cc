// What tools read that count: roles, and the summary of the state.

#include <array>
#include <map>
#include <nlohmann/json.hpp>

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

struct TaskCounts {
  std::map<std::string, int> by_state = none_of_any_state();
  bool alive = false;  ///< one of them has not ended
};

TaskCounts count_tasks(const SeenFramework& framework) {
  TaskCounts counts;
  for (const auto* task : framework.tasks) {
    ++counts.by_state[control::mesos_state(*task, framework.record)];
    counts.alive |= !control::is_final(task->state);
  }
  return counts;
}

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
  auto all = none_of_any_state();
  json alive = json::array();
  json frameworks = json::array();
  for (const auto& framework : frameworks_for(snapshot, false)) {
    const auto counts = count_tasks(framework);
    for (const auto& [name, count] : counts.by_state) all[name] += count;
    if (counts.alive) alive.push_back(framework.id);
    auto view = view_framework(framework);
    view.update(json(counts.by_state));
    view["slave_ids"] = counts.alive ? json::array({snapshot.agent_id}) : json::array();
    frameworks.push_back(std::move(view));
  }
  auto slave = view_slave(snapshot);
  slave.update(json(all));
  slave["framework_ids"] = std::move(alive);
  return compact({{"hostname", snapshot.options.hostname},
                  {"cluster", ""},
                  {"slaves", json::array({std::move(slave)})},
                  {"frameworks", std::move(frameworks)}});
}

}  // namespace drover::api::mesos

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

/// Adds how many tasks of each state there are.
void count_tasks(const json& framework, json& counts) {
  for (const auto* list : {"tasks", "completed_tasks"})
    for (const auto& task : framework.at(list)) {
      auto& count = counts[task.at("state").get<std::string>()];
      count = count.get<int>() + 1;
    }
}

json no_tasks() {
  json counts = json::object();
  for (const auto* name : kStates) counts[name] = 0;
  return counts;
}

struct Role {
  json frameworks = json::array();
  control::Amounts allocated;
  control::Amounts offered;
};

json view_role(const std::string& name, const Role& role) {
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

Result<Response> get_roles(const Services& services, const Request& request) {
  std::map<std::string, Role> roles{{"*", {}}};
  const auto& state = services.daemon->state();
  const auto used = control::held_by_frameworks(state);
  for (const auto& framework : view_frameworks(services, *request.caller, false)) {
    const auto id = framework.at("id").get<std::string>();
    bool first = true;
    for (const auto& name : framework.at("roles")) {
      auto& role = roles[name.get<std::string>()];
      role.frameworks.push_back(id);
      // It is not kept for which of several roles a task was accepted: the first stands for all.
      if (const auto found = used.find(id); first && found != used.end()) role.allocated += found->second;
      first = false;
    }
    for (const auto& [offer_id, offer] : services.mesos->book().offers())
      if (offer.framework == id) roles[offer.role].offered += offer.amounts;
  }
  json views = json::array();
  for (const auto& [name, role] : roles) views.push_back(view_role(name, role));
  return compact({{"roles", std::move(views)}});
}

Result<Response> get_state_summary(const Services& services, const Request& request) {
  const auto& master = *services.mesos;
  auto slave = view_slave(services);
  slave.update(no_tasks());
  slave["framework_ids"] = json::array();
  json frameworks = json::array();
  for (auto& framework : view_frameworks(services, *request.caller, false)) {
    count_tasks(framework, slave);
    const bool runs = !framework.at("tasks").empty();
    if (runs) slave["framework_ids"].push_back(framework.at("id"));
    auto counted = no_tasks();
    count_tasks(framework, counted);
    framework.update(counted);
    framework["slave_ids"] = runs ? json::array({master.agent_id()}) : json::array();
    for (const auto* list : {"tasks", "completed_tasks", "unreachable_tasks", "executors", "offers"})
      framework.erase(list);
    frameworks.push_back(std::move(framework));
  }
  return compact({{"hostname", master.options().hostname},
                  {"cluster", ""},
                  {"slaves", json::array({std::move(slave)})},
                  {"frameworks", std::move(frameworks)}});
}

}  // namespace drover::api::mesos

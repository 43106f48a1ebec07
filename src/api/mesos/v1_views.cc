#include "api/mesos/v1_views.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/mesos/protobuf_json.h"
#include "api/mesos/protocol.h"
#include "api/mesos/values.h"
#include "api/mesos/views.h"
#include "control/frameworks.h"

namespace drover::api::mesos {
namespace {

using control::TaskRecord;
using nlohmann::json;

/// Ids are messages.
json id_message(const json& value) {
  return {{"value", value}};
}

json time_message(TimePoint at) {
  return {{"nanoseconds", at.time_since_epoch().count() * 1'000'000}};
}

json resource_list(const control::Amounts& amounts) {
  json resources = json::array();
  const auto add = [&](const std::string& name, const char* type, const char* field, json value) {
    resources.push_back({{"name", name}, {"type", type}, {field, std::move(value)}, {"role", "*"}});
  };
  json ranges = json::array();
  for (const auto& range : amounts.ports) ranges.push_back({{"begin", range.begin}, {"end", range.end}});
  if (!ranges.empty()) add("ports", "RANGES", "ranges", {{"range", std::move(ranges)}});
  const auto scalars = view(amounts);
  for (const auto& [name, value] : scalars.items())
    if (value.is_number() && value != 0) add(name, "SCALAR", "scalar", {{"value", value}});
  return resources;
}

/// {"name": …, "value": …} of each member.
json named_values(const json& object) {
  json list = json::array();
  for (const auto& [name, value] : object.items()) list.push_back({{"name", name}, {"value", value}});
  return list;
}

/// The tasks by the lists of an answer: those that have not started, those that have, and "completed_tasks".
json tasks_by(const Services& services, const engine::Caller& caller, const char* queued,
              const char* launched) {
  json lists = json::object();
  for (const bool removed : {false, true})
    for (const auto& framework : frameworks_for(services, caller, removed))
      for (const auto* record : framework.tasks) {
        const bool waits = record->state == control::TaskState::kQueued;
        const auto* list = control::is_final(record->state) ? "completed_tasks" : waits ? queued : launched;
        lists[list].push_back(v1_task(services, framework, *record));
      }
  return lists;
}

json executor_message(const Services& services, const SeenFramework& framework,
                      const SeenExecutor& executor) {
  json info = {{"executor_id", id_message(executor.id)},
               {"framework_id", id_message(framework.id)},
               {"name", executor.name},
               {"source", executor.id},
               {"resources", resource_list(executor.used)}};
  if (executor.of_group) info["type"] = "DEFAULT";
  return {{"executor_info", std::move(info)}, {"agent_id", id_message(services.mesos->agent_id())}};
}

json agent_message(const Services& services) {
  const auto& master = *services.mesos;
  auto agent = view_slave(services);
  json attributes = json::array();
  for (const auto& [name, values] : services.daemon->state().machine().attributes)
    for (const auto& value : values)
      attributes.push_back({{"name", name}, {"type", "TEXT"}, {"text", {{"value", value}}}});
  json capabilities = json::array();
  for (const auto& capability : agent["capabilities"]) capabilities.push_back({{"type", capability}});
  auto resources = resource_list(total_of(services.daemon->node()));
  agent["agent_info"] = {{"id", id_message(master.agent_id())},
                         {"hostname", agent["hostname"]},
                         {"port", agent["port"]},
                         {"attributes", std::move(attributes)},
                         {"resources", resources}};
  agent["registered_time"] = time_message(master.started_at());
  agent["total_resources"] = std::move(resources);
  agent["allocated_resources"] = resource_list(control::held_by_all(services.daemon->state()));
  agent["offered_resources"] = resource_list(all_offered(master));
  agent["capabilities"] = std::move(capabilities);
  return agent;
}

}  // namespace

json v1_task(const Services& services, const SeenFramework& framework, const TaskRecord& record) {
  auto task = view_task(services, framework, record);
  task["task_id"] = id_message(task["id"]);
  task["framework_id"] = id_message(framework.id);
  task["agent_id"] = id_message(task["slave_id"]);
  task["executor_id"] = task["executor_id"] == "" ? json() : id_message(task["executor_id"]);
  task["resources"] = resource_list(control::held_by(record));
  task["labels"] = task["labels"].empty() ? json() : json{{"labels", task["labels"]}};
  if (auto limits = task.find("limits"); limits != task.end())
    for (auto& limit : *limits) limit = id_message(limit);
  for (auto& status : task["statuses"]) status["task_id"] = task["task_id"];
  return task;
}

json v1_framework(const SeenFramework& framework) {
  const auto& record = framework.record;
  auto info = info_of(record);
  info["id"] = id_message(framework.id);
  info["name"] = record.name;
  info["user"] = record.user;
  auto allocated = framework.used;
  allocated += framework.offered;
  json message = {{"framework_info", std::move(info)},
                  {"active", framework.connected},
                  {"connected", framework.connected},
                  {"recovered", false},
                  {"registered_time", time_message(record.registered_at)},
                  {"reregistered_time", time_message(record.reregistered_at)},
                  {"allocated_resources", resource_list(allocated)},
                  {"offered_resources", resource_list(framework.offered)}};
  if (record.removed_at) message["unregistered_time"] = time_message(*record.removed_at);
  return message;
}

json v1_health(const Services&, const engine::Caller&) {
  return {{"healthy", true}};
}

json v1_flags(const Services& services, const engine::Caller&) {
  return {{"flags", named_values(view_flags(*services.mesos))}};
}

json v1_version(const Services&, const engine::Caller&) {
  return {{"version_info", view_version()}};
}

json v1_metrics(const Services& services, const engine::Caller&) {
  return {{"metrics", named_values(view_metrics(services))}};
}

/// Mesos counts how verbose it is beyond its ordinary log, which is not a thing here.
json v1_logging_level(const Services&, const engine::Caller&) {
  return {{"level", 0}};
}

json v1_frameworks(const Services& services, const engine::Caller& caller) {
  json lists = json::object();
  for (const bool removed : {false, true})
    for (const auto& framework : frameworks_for(services, caller, removed))
      lists[removed ? "completed_frameworks" : "frameworks"].push_back(v1_framework(framework));
  return lists;
}

json v1_executors(const Services& services, const engine::Caller& caller) {
  json lists = json::object();
  for (const bool removed : {false, true})
    for (const auto& framework : frameworks_for(services, caller, removed))
      for (const auto& executor : executors_of(services, framework))
        lists[executor.alive ? "executors" : "completed_executors"].push_back(
            executor_message(services, framework, executor));
  return lists;
}

json v1_nothing(const Services&, const engine::Caller&) {
  return json::object();
}

json v1_state(const Services& services, const engine::Caller& caller) {
  return {{"get_tasks", v1_tasks(services, caller)},
          {"get_executors", v1_executors(services, caller)},
          {"get_frameworks", v1_frameworks(services, caller)},
          {"get_agents", v1_agents(services, caller)}};
}

json v1_tasks(const Services& services, const engine::Caller& caller) {
  return tasks_by(services, caller, "tasks", "tasks");
}

json v1_agents(const Services& services, const engine::Caller&) {
  return {{"agents", json::array({agent_message(services)})}};
}

json v1_roles(const Services& services, const engine::Caller& caller) {
  json roles = json::array();
  for (const auto& [name, role] : roles_for(services, caller)) {
    json frameworks = json::array();
    for (const auto& id : role.frameworks) frameworks.push_back(id_message(id));
    auto resources = role.allocated;
    resources += role.offered;
    roles.push_back({{"name", name},
                     {"weight", 1.0},
                     {"frameworks", std::move(frameworks)},
                     {"resources", resource_list(resources)}});
  }
  return {{"roles", std::move(roles)}};
}

json v1_master(const Services& services, const engine::Caller&) {
  const auto& master = *services.mesos;
  const auto since = seconds_of(master.started_at());
  return {{"master_info", json::parse(to_json(master.describe()))},
          {"start_time", since},
          {"elected_time", since}};
}

json v1_no_status(const Services&, const engine::Caller&) {
  return {{"status", json::object()}};
}

json v1_no_schedule(const Services&, const engine::Caller&) {
  return {{"schedule", json::object()}};
}

json v1_agent_state(const Services& services, const engine::Caller& caller) {
  return {{"get_tasks", v1_agent_tasks(services, caller)},
          {"get_executors", v1_executors(services, caller)},
          {"get_frameworks", v1_frameworks(services, caller)}};
}

json v1_agent_tasks(const Services& services, const engine::Caller& caller) {
  return tasks_by(services, caller, "queued_tasks", "launched_tasks");
}

json v1_agent(const Services& services, const engine::Caller&) {
  return agent_message(services);
}

json v1_containers(const Services& services, const engine::Caller& caller) {
  auto containers = view_containers(services, caller);
  for (auto& container : containers) {
    for (const auto* id : {"framework_id", "executor_id", "container_id"})
      container[id] = id_message(container[id]);
    container["container_status"] = std::move(container["status"]);
    container["resource_statistics"] = std::move(container["statistics"]);
  }
  return {{"containers", std::move(containers)}};
}

}  // namespace drover::api::mesos

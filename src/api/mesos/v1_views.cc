#include "api/mesos/v1_views.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

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
using google::protobuf::Message;
using nlohmann::json;

/// Ids are messages.
json id_message(const json& value) {
  return {{"value", value}};
}

json time_message(TimePoint at) {
  return {{"nanoseconds", at.time_since_epoch().count() * 1'000'000}};
}

json resource_list(const control::ResourceAmounts& amounts) {
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

/// Adds the tasks to the lists of an answer: those that have not started, those that have, and
/// "completed_tasks".
Status add_tasks(const Snapshot& snapshot, const char* queued, const char* launched, Message& answer) {
  for (const bool removed : {false, true})
    for (const auto& framework : frameworks_for(snapshot, removed))
      for (const auto* record : framework.tasks) {
        const bool waits = record->state == control::TaskState::kQueued;
        const auto* list = control::is_final(record->state) ? "completed_tasks" : waits ? queued : launched;
        DROVER_CHECK_OK(from_json({{list, v1_task(snapshot, framework, *record)}}, answer));
      }
  return {};
}

/// Adds a part of the answer that is a view itself.
Status add_part(const Snapshot& snapshot, const char* field, V1View view, Message& answer) {
  const auto* const part = answer.GetDescriptor()->FindFieldByName(field);
  return view(snapshot, *answer.GetReflection()->MutableMessage(&answer, part));
}

json executor_message(const Snapshot& snapshot, const SeenFramework& framework,
                      const SeenExecutor& executor) {
  json info = {{"executor_id", id_message(executor.id)},
               {"framework_id", id_message(framework.id)},
               {"name", executor.name},
               {"source", executor.id},
               {"resources", resource_list(executor.used)}};
  if (executor.of_group) info["type"] = "DEFAULT";
  if (executor.own) info["type"] = "CUSTOM";
  return {{"executor_info", std::move(info)}, {"agent_id", id_message(snapshot.agent_id)}};
}

json agent_message(const Snapshot& snapshot) {
  auto agent = view_slave(snapshot);
  json attributes = json::array();
  for (const auto& [name, values] : snapshot.state->machine().attributes)
    for (const auto& value : values)
      attributes.push_back({{"name", name}, {"type", "TEXT"}, {"text", {{"value", value}}}});
  json capabilities = json::array();
  for (const auto& capability : agent["capabilities"]) capabilities.push_back({{"type", capability}});
  auto resources = resource_list(total_of(snapshot.node));
  agent["agent_info"] = {{"id", id_message(snapshot.agent_id)},
                         {"hostname", agent["hostname"]},
                         {"port", agent["port"]},
                         {"attributes", std::move(attributes)},
                         {"resources", resources}};
  agent["registered_time"] = time_message(snapshot.started_at);
  agent["total_resources"] = std::move(resources);
  agent["allocated_resources"] = resource_list(control::held_by_all(*snapshot.state));
  agent["offered_resources"] = resource_list(all_offered(snapshot));
  agent["capabilities"] = std::move(capabilities);
  return agent;
}

}  // namespace

json v1_task(const Snapshot& snapshot, const SeenFramework& framework, const TaskRecord& record) {
  std::string text;
  JsonWriter writer(text);
  write_task(writer, snapshot, framework, record);
  auto task = json::parse(text);
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

Status v1_health(const Snapshot&, Message& answer) {
  return from_json({{"healthy", true}}, answer);
}

Status v1_flags(const Snapshot& snapshot, Message& answer) {
  return from_json({{"flags", named_values(view_flags(snapshot.options))}}, answer);
}

Status v1_version(const Snapshot&, Message& answer) {
  return from_json({{"version_info", view_version()}}, answer);
}

Status v1_metrics(const Snapshot& snapshot, Message& answer) {
  return from_json({{"metrics", named_values(view_metrics(snapshot))}}, answer);
}

/// Mesos counts how verbose it is beyond its ordinary log, which is not a thing here.
Status v1_logging_level(const Snapshot&, Message& answer) {
  return from_json({{"level", 0}}, answer);
}

Status v1_frameworks(const Snapshot& snapshot, Message& answer) {
  for (const bool removed : {false, true})
    for (const auto& framework : frameworks_for(snapshot, removed))
      DROVER_CHECK_OK(
          from_json({{removed ? "completed_frameworks" : "frameworks", v1_framework(framework)}}, answer));
  return {};
}

Status v1_executors(const Snapshot& snapshot, Message& answer) {
  for (const bool removed : {false, true})
    for (const auto& framework : frameworks_for(snapshot, removed))
      for (const auto& executor : executors_of(snapshot, framework))
        DROVER_CHECK_OK(from_json({{executor.alive ? "executors" : "completed_executors",
                                    executor_message(snapshot, framework, executor)}},
                                  answer));
  return {};
}

Status v1_nothing(const Snapshot&, Message&) {
  return {};
}

Status v1_state(const Snapshot& snapshot, Message& answer) {
  DROVER_CHECK_OK(add_part(snapshot, "get_tasks", v1_tasks, answer));
  DROVER_CHECK_OK(add_part(snapshot, "get_executors", v1_executors, answer));
  DROVER_CHECK_OK(add_part(snapshot, "get_frameworks", v1_frameworks, answer));
  return add_part(snapshot, "get_agents", v1_agents, answer);
}

Status v1_tasks(const Snapshot& snapshot, Message& answer) {
  return add_tasks(snapshot, "tasks", "tasks", answer);
}

Status v1_agents(const Snapshot& snapshot, Message& answer) {
  return from_json({{"agents", json::array({agent_message(snapshot)})}}, answer);
}

Status v1_roles(const Snapshot& snapshot, Message& answer) {
  json roles = json::array();
  for (const auto& [name, role] : roles_for(snapshot)) {
    json frameworks = json::array();
    for (const auto& id : role.frameworks) frameworks.push_back(id_message(id));
    auto resources = role.allocated;
    resources += role.offered;
    roles.push_back({{"name", name},
                     {"weight", 1.0},
                     {"frameworks", std::move(frameworks)},
                     {"resources", resource_list(resources)}});
  }
  return from_json({{"roles", std::move(roles)}}, answer);
}

Status v1_master(const Snapshot& snapshot, Message& answer) {
  const auto since = seconds_of(snapshot.started_at);
  return from_json({{"master_info", json::parse(to_json(describe(snapshot.master_id, snapshot.options)))},
                    {"start_time", since},
                    {"elected_time", since}},
                   answer);
}

Status v1_no_status(const Snapshot&, Message& answer) {
  return from_json({{"status", json::object()}}, answer);
}

Status v1_no_schedule(const Snapshot&, Message& answer) {
  return from_json({{"schedule", json::object()}}, answer);
}

Status v1_agent_state(const Snapshot& snapshot, Message& answer) {
  DROVER_CHECK_OK(add_part(snapshot, "get_tasks", v1_agent_tasks, answer));
  DROVER_CHECK_OK(add_part(snapshot, "get_executors", v1_executors, answer));
  return add_part(snapshot, "get_frameworks", v1_frameworks, answer);
}

Status v1_agent_tasks(const Snapshot& snapshot, Message& answer) {
  return add_tasks(snapshot, "queued_tasks", "launched_tasks", answer);
}

Status v1_agent(const Snapshot& snapshot, Message& answer) {
  return from_json(agent_message(snapshot), answer);
}

Status v1_containers(const Snapshot& snapshot, Message& answer) {
  Status added;
  each_container(snapshot, [&](json container) {
    for (const auto* id : {"framework_id", "executor_id", "container_id"})
      container[id] = id_message(container[id]);
    container["container_status"] = std::move(container["status"]);
    container["resource_statistics"] = std::move(container["statistics"]);
    if (added) added = from_json({{"containers", std::move(container)}}, answer);
  });
  return added;
}

}  // namespace drover::api::mesos

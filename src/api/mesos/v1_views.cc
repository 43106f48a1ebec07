#include "api/mesos/v1_views.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "api/mesos/protobuf_json.h"
#include "api/mesos/protocol.h"
#include "api/mesos/seen_task.h"
#include "api/mesos/task_info.h"
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

void put_resources(const control::ResourceAmounts& amounts, ResourceList& resources) {
  write_resources(amounts, {.by_name = true}, resources);
}

json resource_list(const control::ResourceAmounts& amounts) {
  ResourceList messages;
  put_resources(amounts, messages);
  json resources = json::array();
  for (const auto& message : messages) resources.push_back(json::parse(to_json(message)));
  return resources;
}

/// {"name": …, "value": …} of each member.
json named_values(const json& object) {
  json list = json::array();
  for (const auto& [name, value] : object.items()) list.push_back({{"name", name}, {"value", value}});
  return list;
}

// Master and agent have messages of their own for their answers, with fields of the same names.

/// One more message in that list; null: there is no such list.
template <typename Part>
Part* add_to(Message& message, const char* list) {
  const auto* const field = message.GetDescriptor()->FindFieldByName(list);
  return field == nullptr ? nullptr
                          : static_cast<Part*>(message.GetReflection()->AddMessage(&message, field));
}
/// The message in that field; null: there is no such field.
template <typename Part>
Part* part_of(Message& message, const char* name) {
  const auto* const field = message.GetDescriptor()->FindFieldByName(name);
  return field == nullptr ? nullptr
                          : static_cast<Part*>(message.GetReflection()->MutableMessage(&message, field));
}

/// Those that are there, and those that were removed.
using Frameworks = std::array<std::vector<SeenFramework>, 2>;

Frameworks all_frameworks(const Snapshot& snapshot) {
  return {frameworks_for(snapshot, false), frameworks_for(snapshot, true)};
}

/// How a master, or an agent, calls the list of tasks that have not started, and of those that have.
struct TaskLists {
  const char* queued;
  const char* launched;
};
constexpr TaskLists kOfMaster{"tasks", "tasks"}, kOfAgent{"queued_tasks", "launched_tasks"};

void add_tasks(const Snapshot& snapshot, const Frameworks& frameworks, const TaskLists& lists,
               Message& answer) {
  for (const auto& some : frameworks)
    for (const auto& framework : some)
      for (const auto* record : framework.tasks) {
        const bool waits = record->state == control::TaskState::kQueued;
        const auto* list = control::is_final(record->state) ? "completed_tasks"
                           : waits                          ? lists.queued
                                                            : lists.launched;
        put_task(snapshot, framework, *record, *add_to<v1::Task>(answer, list));
      }
}

void put_executor(const Snapshot& snapshot, const SeenFramework& framework, const SeenExecutor& executor,
                  Message& message) {
  auto& info = *part_of<v1::ExecutorInfo>(message, "executor_info");
  if (executor.of_group) info.set_type(v1::ExecutorInfo::DEFAULT);
  if (executor.own) info.set_type(v1::ExecutorInfo::CUSTOM);
  const std::string id(executor.id);
  info.mutable_executor_id()->set_value(id);
  info.mutable_framework_id()->set_value(framework.id);
  put_resources(executor.used, *info.mutable_resources());
  info.set_name(executor.name());
  info.set_source(id);
  if (auto* agent = part_of<v1::AgentID>(message, "agent_id"))
    agent->set_value(control::agent_of(*snapshot.state, *executor.shown));
}

void add_executors(const Snapshot& snapshot, const Frameworks& frameworks, Message& answer) {
  for (const auto& some : frameworks)
    for (const auto& framework : some)
      for (const auto& executor : executors_of(snapshot, framework))
        if (auto* message = add_to<Message>(answer, executor.alive ? "executors" : "completed_executors"))
          put_executor(snapshot, framework, executor, *message);
}

Status add_frameworks(const Frameworks& frameworks, Message& answer) {
  for (const bool removed : {false, true})
    for (const auto& framework : frameworks.at(removed ? 1 : 0))
      DROVER_CHECK_OK(
          from_json({{removed ? "completed_frameworks" : "frameworks", v1_framework(framework)}}, answer));
  return {};
}

/// What the states of both have.
Status add_state(const Snapshot& snapshot, const TaskLists& lists, Message& answer) {
  const auto frameworks = all_frameworks(snapshot);
  add_tasks(snapshot, frameworks, lists, *part_of<Message>(answer, "get_tasks"));
  add_executors(snapshot, frameworks, *part_of<Message>(answer, "get_executors"));
  return add_frameworks(frameworks, *part_of<Message>(answer, "get_frameworks"));
}

void put_status(const Snapshot& snapshot, const SeenTask& task, const std::string& state, TimePoint at,
                v1::TaskStatus& status) {
  status.mutable_task_id()->set_value(task.id);
  status.set_state(state_named(state));
  status.set_timestamp(seconds_of(at));
  auto& container = *status.mutable_container_status();
  container.mutable_container_id()->set_value(task.record.task.id);
  container.add_network_infos()->add_ip_addresses()->set_ip_address(
      control::address_of(task.record, snapshot.options.ip));
}

void put_discovery(const SeenTask& task, v1::DiscoveryInfo& discovery) {
  discovery.set_visibility(v1::DiscoveryInfo::FRAMEWORK);
  discovery.set_name(task.name);
  auto& ports = *discovery.mutable_ports();
  task.each_port([&](const std::string& name, int number, const char* protocol) {
    auto& port = *ports.add_ports();
    port.set_number(static_cast<std::uint32_t>(number));
    if (!name.empty()) port.set_name(name);
    port.set_protocol(protocol);
  });
}

/// As JSON: what is added to a map of protobuf itself stands in an order that differs from time to time.
void put_limits(const SeenTask& task, v1::Task& message) {
  json limits = json::object();
  task.each_limit([&](const char* name, double amount) { limits[name] = id_message(amount); });
  if (!limits.empty()) (void)from_json({{"limits", std::move(limits)}}, message);
}

json agent_message(const Snapshot& snapshot, const SeenAgent& seen) {
  auto agent = view_slave(snapshot, seen);
  json attributes = json::array();
  for (const auto& [name, values] : seen.agent.attributes)
    for (const auto& value : values)
      attributes.push_back({{"name", name}, {"type", "TEXT"}, {"text", {{"value", value}}}});
  json capabilities = json::array();
  for (const auto& capability : agent["capabilities"]) capabilities.push_back({{"type", capability}});
  auto resources = resource_list(total_of(seen.agent.node));
  agent["agent_info"] = {{"id", id_message(seen.agent.id)},
                         {"hostname", agent["hostname"]},
                         {"port", agent["port"]},
                         {"attributes", std::move(attributes)},
                         {"resources", resources}};
  agent["registered_time"] = time_message(snapshot.started_at);
  agent["total_resources"] = std::move(resources);
  agent["allocated_resources"] = resource_list(seen.used);
  agent["offered_resources"] = resource_list(seen.offered);
  agent["capabilities"] = std::move(capabilities);
  return agent;
}

}  // namespace

void put_task(const Snapshot& snapshot, const SeenFramework& framework, const TaskRecord& record,
              v1::Task& message) {
  const SeenTask task(snapshot, framework, record);
  message.set_name(task.name);
  message.mutable_task_id()->set_value(task.id);
  message.mutable_framework_id()->set_value(framework.id);
  if (!task.alone) message.mutable_executor_id()->set_value(task.executor);
  message.mutable_agent_id()->set_value(control::agent_of(*snapshot.state, record));
  message.set_state(state_named(task.state));
  put_resources(task.held, *message.mutable_resources());
  task.each_status([&](const std::string& state, TimePoint at) {
    put_status(snapshot, task, state, at, *message.add_statuses());
  });
  for (const auto& [key, value] : record.task.labels) {
    auto& label = *message.mutable_labels()->add_labels();
    label.set_key(key);
    label.set_value(value);
  }
  if (task.is_instance()) put_discovery(task, *message.mutable_discovery());
  message.set_user(record.task.user.name);
  put_limits(task, message);
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
  return add_frameworks(all_frameworks(snapshot), answer);
}

Status v1_executors(const Snapshot& snapshot, Message& answer) {
  add_executors(snapshot, all_frameworks(snapshot), answer);
  return {};
}

Status v1_nothing(const Snapshot&, Message&) {
  return {};
}

Status v1_state(const Snapshot& snapshot, Message& answer) {
  DROVER_CHECK_OK(add_state(snapshot, kOfMaster, answer));
  return v1_agents(snapshot, *part_of<Message>(answer, "get_agents"));
}

Status v1_tasks(const Snapshot& snapshot, Message& answer) {
  add_tasks(snapshot, all_frameworks(snapshot), kOfMaster, answer);
  return {};
}

Status v1_agents(const Snapshot& snapshot, Message& answer) {
  json agents = json::array();
  for (const auto& agent : agents_in(snapshot)) agents.push_back(agent_message(snapshot, agent));
  return from_json({{"agents", std::move(agents)}}, answer);
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
  return add_state(snapshot, kOfAgent, answer);
}

Status v1_agent_tasks(const Snapshot& snapshot, Message& answer) {
  add_tasks(snapshot, all_frameworks(snapshot), kOfAgent, answer);
  return {};
}

Status v1_agent(const Snapshot& snapshot, Message& answer) {
  return from_json(agent_message(snapshot, whole_of(snapshot)), answer);
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

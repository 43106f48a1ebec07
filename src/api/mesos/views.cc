#include "api/mesos/views.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "api/mesos/values.h"
#include "base/json_text.h"
#include "control/frameworks.h"

namespace drover::api::mesos {
namespace {

using control::TaskRecord;
using nlohmann::json;

json attributes_of(const control::State& state) {
  json attributes = json::object();
  for (const auto& [name, values] : state.machine().attributes)
    attributes[name] = fmt::format("{}", fmt::join(values, ","));
  return attributes;
}

void write_container_status(JsonWriter& writer, const Snapshot& snapshot, const TaskRecord& record) {
  writer.begin_object();
  writer.key("container_id");
  writer.begin_object();
  writer.field("value", record.task.id);
  writer.end_object();
  writer.key("network_infos");
  writer.begin_array();
  writer.begin_object();
  writer.key("ip_addresses");
  writer.begin_array();
  writer.begin_object();
  writer.field("ip_address", snapshot.options.ip);
  writer.end_object();
  writer.end_array();
  writer.end_object();
  writer.end_array();
  writer.end_object();
}

/// Of every status that a task has had, as far as that is known.
void write_statuses(JsonWriter& writer, const Snapshot& snapshot, const TaskRecord& record,
                    const std::string& state) {
  const auto add = [&](std::string_view name, TimePoint at) {
    writer.begin_object();
    writer.key("container_status");
    write_container_status(writer, snapshot, record);
    writer.field("state", name);
    writer.field("timestamp", seconds_of(at));
    writer.end_object();
  };
  writer.begin_array();
  if (record.started_at) add("TASK_RUNNING", *record.started_at);
  if (record.finished_at) add(state, *record.finished_at);
  writer.end_array();
}

/// "limits": {"cpus": 1.5, "mem": "Infinity"}, as far as it said so.
void write_limits(JsonWriter& writer, const workload::Task& task) {
  const auto& limits = task.limits;
  if (!limits.milli_cpus && !limits.memory_bytes) return;
  const auto add = [&](std::string_view name, double amount) {
    if (amount > 0)
      writer.field(name, amount);
    else
      writer.field(name, "Infinity");
  };
  writer.key("limits");
  writer.begin_object();
  if (limits.milli_cpus) add("cpus", static_cast<double>(*limits.milli_cpus) / 1000);
  if (limits.memory_bytes) add("mem", static_cast<double>(*limits.memory_bytes) / kMiB);
  writer.end_object();
}

/// Where an instance of an app is found, as Marathon tells it.
void write_discovery(JsonWriter& writer, const TaskRecord& record) {
  writer.begin_object();
  writer.field("name", task_name(record));
  writer.key("ports");
  writer.begin_object();
  writer.key("ports");
  writer.begin_array();
  const auto& wanted = record.task.network.ports;
  for (std::size_t i = 0; i < record.ports.size(); ++i) {
    const auto definition = i < wanted.size() ? wanted[i] : workload::Port{};
    for (const auto& [protocol, other] :
         {std::pair("tcp", workload::PortProtocol::kUdp), std::pair("udp", workload::PortProtocol::kTcp)}) {
      if (definition.protocol == other) continue;  // one of both protocols is told twice
      writer.begin_object();
      if (!definition.name.empty()) writer.field("name", definition.name);
      writer.field("number", record.ports[i]);
      writer.field("protocol", protocol);
      writer.end_object();
    }
  }
  writer.end_array();
  writer.end_object();
  writer.field("visibility", "FRAMEWORK");
  writer.end_object();
}

void write_labels(JsonWriter& writer, const TaskRecord& record) {
  writer.begin_array();
  for (const auto& [key, value] : record.task.labels) {
    writer.begin_object();
    writer.field("key", key);
    writer.field("value", value);
    writer.end_object();
  }
  writer.end_array();
}

}  // namespace

void write(JsonWriter& writer, const control::ResourceAmounts& amounts) {
  writer.begin_object();
  writer.field("cpus", static_cast<double>(amounts.milli_cpus) / 1000);
  writer.field("disk", std::floor(static_cast<double>(amounts.disk_bytes) / kMiB));
  writer.field("gpus", static_cast<double>(amounts.gpus));
  writer.field("mem", std::floor(static_cast<double>(amounts.memory_bytes) / kMiB));
  if (!amounts.ports.empty()) {
    std::string ranges;
    for (const auto& range : amounts.ports)
      fmt::format_to(std::back_inserter(ranges), "{}{}-{}", ranges.empty() ? "[" : ", ", range.begin,
                     range.end);
    writer.field("ports", ranges + "]");
  }
  writer.end_object();
}

json view(const control::ResourceAmounts& amounts) {
  std::string text;
  JsonWriter writer(text);
  write(writer, amounts);
  return json::parse(text);
}

control::ResourceAmounts total_of(const engine::NodeView& node) {
  return {node.gpus_total,
          node.milli_cpus_total,
          node.memory_bytes_total,
          node.disk_bytes,
          {{node.port_begin, node.port_end}}};
}

void write_task(JsonWriter& writer, const Snapshot& snapshot, const SeenFramework& framework,
                const TaskRecord& record) {
  const auto& origin = record.task.origin;
  const auto state = control::mesos_state(record, framework.record);
  const auto executor = executor_of(*snapshot.state, record);
  writer.begin_object();
  writer.field("directory", sandbox_path(snapshot, framework.id, record, executor));
  if (origin.kind == workload::OriginKind::kService) {
    writer.key("discovery");
    write_discovery(writer, record);
  }
  writer.field("executor_id", executor == origin.task_id ? "" : executor);
  writer.field("framework_id", framework.id);
  writer.field("gpu_uuids", control::uuids_of(record));
  writer.field("id", origin.task_id);
  writer.key("labels");
  write_labels(writer, record);
  write_limits(writer, record.task);
  writer.field("name", task_name(record));
  writer.key("resources");
  write(writer, control::held_by(record));
  writer.field("role", "*");
  writer.field("slave_id", snapshot.agent_id);
  writer.field("state", state);
  writer.key("statuses");
  write_statuses(writer, snapshot, record, state);
  writer.field("user", record.task.user.name);
  writer.end_object();
}

namespace {

json roles_in(const json& info) {
  return info.value("roles", json::array({info.value("role", "*")}));
}

void write_tasks(JsonWriter& writer, const Snapshot& snapshot, const SeenFramework& framework, bool ended) {
  writer.begin_array();
  for (const auto* record : framework.tasks)
    if (control::is_final(record->state) == ended) write_task(writer, snapshot, framework, *record);
  writer.end_array();
}

}  // namespace

json info_of(const control::FrameworkRecord& record) {
  auto info = json::parse(record.info, nullptr, false);
  return info.is_object() ? info : json::object();
}

std::vector<std::string> roles_of(const control::FrameworkRecord& record) {
  return roles_in(info_of(record)).get<std::vector<std::string>>();
}

json view_framework(const SeenFramework& framework) {
  const auto& record = framework.record;
  const auto info = info_of(record);
  json capabilities = json::array();
  for (const auto& capability : info.value("capabilities", json::array()))
    capabilities.push_back(capability.value("type", "UNKNOWN"));
  auto allocated = framework.used;
  allocated += framework.offered;
  return {{"id", framework.id},
          {"name", record.name},
          {"user", record.user},
          {"principal", info.value("principal", "")},
          {"role", info.value("role", "*")},
          {"roles", roles_in(info)},
          {"hostname", info.value("hostname", "")},
          {"webui_url", info.value("webui_url", "")},
          {"failover_timeout", static_cast<double>(record.failover_timeout.count()) / 1000},
          {"checkpoint", info.value("checkpoint", false)},
          {"capabilities", std::move(capabilities)},
          {"active", framework.connected},
          {"connected", framework.connected},
          {"recovered", false},
          {"registered_time", seconds_of(record.registered_at)},
          {"reregistered_time", seconds_of(record.reregistered_at)},
          {"unregistered_time", record.removed_at ? seconds_of(*record.removed_at) : 0.0},
          {"resources", view(allocated)},
          {"used_resources", view(framework.used)},
          {"offered_resources", view(framework.offered)}};
}

control::ResourceAmounts all_offered(const Snapshot& snapshot) {
  control::ResourceAmounts offered;
  for (const auto& [framework, amounts] : snapshot.offered) offered += amounts;
  return offered;
}

json view_slave(const Snapshot& snapshot) {
  const auto total = view(total_of(snapshot.node));
  const auto& options = snapshot.options;
  return {{"id", snapshot.agent_id},
          {"hostname", options.hostname},
          {"port", options.port},
          {"pid", fmt::format("slave(1)@{}:{}", options.ip, options.port)},
          {"attributes", attributes_of(*snapshot.state)},
          {"resources", total},
          {"unreserved_resources", total},
          {"reserved_resources", json::object()},
          {"used_resources", view(control::held_by_all(*snapshot.state))},
          {"offered_resources", view(all_offered(snapshot))},
          {"registered_time", seconds_of(snapshot.started_at)},
          {"active", true},
          {"deactivated", false},
          {"version", kMesosVersion},
          {"capabilities", {"MULTI_ROLE", "HIERARCHICAL_ROLE", "RESERVATION_REFINEMENT"}}};
}

void write_frameworks(JsonWriter& writer, const Snapshot& snapshot,
                      const std::vector<SeenFramework>& frameworks) {
  writer.begin_array();
  for (const auto& framework : frameworks) {
    writer.begin_object();
    writer.fields(view_framework(framework));
    writer.key("tasks");
    write_tasks(writer, snapshot, framework, false);
    writer.key("completed_tasks");
    write_tasks(writer, snapshot, framework, true);
    for (const auto* list : {"unreachable_tasks", "offers"}) writer.field_raw(list, "[]");
    // One port is the master's and the agent's: who asks the agent for its state gets this one.
    write_executors(writer, snapshot, framework, false);
    writer.end_object();
  }
  writer.end_array();
}

std::size_t room_for(const std::vector<SeenFramework>& frameworks) {
  // More than most take, and what is not written to costs nothing.
  constexpr std::size_t kBytesOfFramework = 4000, kBytesOfTask = 2500;
  std::size_t bytes = 0;
  for (const auto& framework : frameworks) bytes += kBytesOfFramework + framework.tasks.size() * kBytesOfTask;
  return bytes;
}

Response compact(const json& value) {
  Response response;
  response.body = to_text(value);
  return response;
}

}  // namespace drover::api::mesos

#include "api/mesos/views.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
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

/// Of every status that a task has had, as far as that is known.
json statuses_of(const Master& master, const control::TaskRecord& record, const std::string& state) {
  const auto& ip = master.options().ip;
  json container = {
      {"container_id", {{"value", record.task.id}}},
      {"network_infos", json::array({{{"ip_addresses", json::array({{{"ip_address", ip}}})}}})}};
  json statuses = json::array();
  const auto add = [&](const std::string& name, TimePoint at) {
    statuses.push_back({{"state", name}, {"timestamp", seconds_of(at)}, {"container_status", container}});
  };
  if (record.started_at) add("TASK_RUNNING", *record.started_at);
  if (record.finished_at) add(state, *record.finished_at);
  return statuses;
}

/// Where an instance of an app is found, as Marathon tells it.
json discovery_of(const TaskRecord& record) {
  json ports = json::array();
  const auto& wanted = record.task.network.ports;
  for (std::size_t i = 0; i < record.ports.size(); ++i) {
    const auto definition = i < wanted.size() ? wanted[i] : workload::Port{};
    json port = {{"number", record.ports[i]}};
    if (!definition.name.empty()) port["name"] = definition.name;
    for (const auto& [protocol, other] :
         {std::pair("tcp", workload::PortProtocol::kUdp), std::pair("udp", workload::PortProtocol::kTcp)}) {
      if (definition.protocol == other) continue;  // one of both protocols is told twice
      port["protocol"] = protocol;
      ports.push_back(port);
    }
  }
  return {{"visibility", "FRAMEWORK"}, {"name", task_name(record)}, {"ports", {{"ports", std::move(ports)}}}};
}

}  // namespace

json view(const control::Amounts& amounts) {
  json value = {{"cpus", static_cast<double>(amounts.milli_cpus) / 1000},
                {"disk", std::floor(static_cast<double>(amounts.disk_bytes) / kMiB)},
                {"gpus", static_cast<double>(amounts.gpus)},
                {"mem", std::floor(static_cast<double>(amounts.memory_bytes) / kMiB)}};
  std::vector<std::string> ranges;
  for (const auto& range : amounts.ports) ranges.push_back(fmt::format("{}-{}", range.begin, range.end));
  if (!ranges.empty()) value["ports"] = fmt::format("[{}]", fmt::join(ranges, ", "));
  return value;
}

control::Amounts total_of(const engine::NodeView& node) {
  return {node.gpus_total,
          node.milli_cpus_total,
          node.memory_bytes_total,
          node.disk_bytes,
          {{node.port_begin, node.port_end}}};
}

json view_task(const Services& services, const SeenFramework& framework, const TaskRecord& record) {
  const auto& master = *services.mesos;
  const auto& origin = record.task.origin;
  const auto state = control::mesos_state(record, framework.record);
  const auto executor = executor_of(services.daemon->state(), record);
  json labels = json::array();
  for (const auto& [key, value] : record.task.labels) labels.push_back({{"key", key}, {"value", value}});
  json gpus = json::array();
  for (const auto& uuid : control::uuids_of(record)) gpus.push_back(uuid);
  json shown = {{"id", origin.task_id},
                {"name", task_name(record)},
                {"framework_id", framework.id},
                {"executor_id", executor == origin.task_id ? "" : executor},
                {"slave_id", master.agent_id()},
                {"state", state},
                {"resources", view(control::held_by(record))},
                {"role", "*"},
                {"user", record.task.user.name},
                {"statuses", statuses_of(master, record, state)},
                {"labels", std::move(labels)},
                {"directory", sandbox_path(master, framework.id, record, executor)},
                {"gpu_uuids", std::move(gpus)}};
  if (origin.kind == workload::OriginKind::kService) shown["discovery"] = discovery_of(record);
  return shown;
}

namespace {

json roles_in(const json& info) {
  return info.value("roles", json::array({info.value("role", "*")}));
}

void add_tasks(const Services& services, const SeenFramework& framework, json& view) {
  json tasks = json::array();
  json completed = json::array();
  for (const auto* record : framework.tasks)
    (control::is_final(record->state) ? completed : tasks).push_back(view_task(services, framework, *record));
  view["tasks"] = std::move(tasks);
  view["completed_tasks"] = std::move(completed);
  for (const auto* list : {"unreachable_tasks", "offers"}) view[list] = json::array();
  // One port is the master's and the agent's: who asks the agent for its state gets this one.
  add_executors(services, framework, false, view);
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

control::Amounts all_offered(const Master& master) {
  control::Amounts offered;
  for (const auto& [framework, amounts] : master.offered()) offered += amounts;
  return offered;
}

json view_slave(const Services& services) {
  const auto& master = *services.mesos;
  const auto node = services.daemon->node();
  const auto total = view(total_of(node));
  const auto& options = master.options();
  return {{"id", master.agent_id()},
          {"hostname", options.hostname},
          {"port", options.port},
          {"pid", fmt::format("slave(1)@{}:{}", options.ip, options.port)},
          {"attributes", attributes_of(services.daemon->state())},
          {"resources", total},
          {"unreserved_resources", total},
          {"reserved_resources", json::object()},
          {"used_resources", view(control::held_by_all(services.daemon->state()))},
          {"offered_resources", view(all_offered(master))},
          {"registered_time", seconds_of(master.started_at())},
          {"active", true},
          {"deactivated", false},
          {"version", kMesosVersion},
          {"capabilities", {"MULTI_ROLE", "HIERARCHICAL_ROLE", "RESERVATION_REFINEMENT"}}};
}

json view_frameworks(const Services& services, const engine::Caller& caller, bool removed) {
  json frameworks = json::array();
  for (const auto& framework : frameworks_for(services, caller, removed)) {
    auto view = view_framework(framework);
    add_tasks(services, framework, view);
    frameworks.push_back(std::move(view));
  }
  return frameworks;
}

Response compact(const json& value) {
  Response response;
  response.body = to_text(value);
  return response;
}

}  // namespace drover::api::mesos

#include "api/mesos/views.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "api/mesos/values.h"
#include "control/frameworks.h"

namespace drover::api::mesos {
namespace {

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

bool may_see(const engine::Caller& caller, const control::FrameworkRecord& record) {
  return caller.is_root() || record.owner == caller.user.uid;
}

std::string sandbox_path(const Master& master, const control::TaskRecord& record,
                         const std::string& executor) {
  return fmt::format("/slaves/{}/frameworks/{}/executors/{}/runs/{}", master.agent_id(),
                     record.task.origin.name, executor, record.task.id);
}

std::string executor_of(const control::State& state, const control::TaskRecord& record) {
  const auto& origin = record.task.origin;
  const auto row = state.framework_tasks.find(control::framework_task_key(origin.name, origin.task_id));
  return row == state.framework_tasks.end() ? origin.task_id : row->second.executor_id;
}

json view_task(const Master& master, const control::State& state, const control::TaskRecord& record,
               const control::FrameworkRecord& framework) {
  const auto& origin = record.task.origin;
  const auto name = control::mesos_state(record, framework);
  const auto executor = executor_of(state, record);
  json labels = json::array();
  for (const auto& [key, value] : record.task.labels) labels.push_back({{"key", key}, {"value", value}});
  json gpus = json::array();
  for (const auto& uuid : control::uuids_of(record)) gpus.push_back(uuid);
  return {{"id", origin.task_id},
          {"name", record.task.name},
          {"framework_id", origin.name},
          {"executor_id", executor == origin.task_id ? "" : executor},
          {"slave_id", master.agent_id()},
          {"state", name},
          {"resources", view(control::held_by(record))},
          {"role", "*"},
          {"user", record.task.user.name},
          {"statuses", statuses_of(master, record, name)},
          {"labels", std::move(labels)},
          {"directory", sandbox_path(master, record, executor)},
          {"gpu_uuids", std::move(gpus)}};
}

namespace {

json parsed_info(const control::FrameworkRecord& record) {
  auto info = json::parse(record.info, nullptr, false);
  return info.is_object() ? info : json::object();
}

json roles_in(const json& info) {
  return info.value("roles", json::array({info.value("role", "*")}));
}

void add_tasks(const Services& services, const FrameworkRow& row, json& framework) {
  const auto& master = *services.mesos;
  const auto& state = services.daemon->state();
  json tasks = json::array();
  json completed = json::array();
  if (const auto found = state.by_origin.find({workload::OriginKind::kFramework, row.first});
      found != state.by_origin.end())
    for (const auto& task : found->second) {
      const auto& one = state.tasks.at(task);
      (control::is_final(one.state) ? completed : tasks).push_back(view_task(master, state, one, row.second));
    }
  framework["tasks"] = std::move(tasks);
  framework["completed_tasks"] = std::move(completed);
  for (const auto* list : {"unreachable_tasks", "executors", "offers"}) framework[list] = json::array();
}

}  // namespace

std::vector<const FrameworkRow*> frameworks_for(const Services& services, const engine::Caller& caller,
                                                bool removed) {
  std::vector<const FrameworkRow*> rows;
  for (const auto& row : services.daemon->state().frameworks)
    if (may_see(caller, row.second) && row.second.removed_at.has_value() == removed) rows.push_back(&row);
  return rows;
}

std::vector<std::string> roles_of(const control::FrameworkRecord& record) {
  return roles_in(parsed_info(record)).get<std::vector<std::string>>();
}

FrameworkAmounts amounts_of_frameworks(const Services& services) {
  return {control::held_by_frameworks(services.daemon->state()), services.mesos->offered()};
}

json view_framework(const Services& services, const FrameworkRow& row, const FrameworkAmounts& amounts) {
  const auto& master = *services.mesos;
  const auto& [id, record] = row;
  const auto info = parsed_info(record);
  json capabilities = json::array();
  for (const auto& capability : info.value("capabilities", json::array()))
    capabilities.push_back(capability.value("type", "UNKNOWN"));
  const auto of_it = [&](const auto& sums) {
    const auto found = sums.find(id);
    return found == sums.end() ? control::Amounts{} : found->second;
  };
  const auto used = of_it(amounts.used);
  const auto offered = of_it(amounts.offered);
  auto allocated = used;
  allocated += offered;
  return {{"id", id},
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
          {"active", master.subscribed(id)},
          {"connected", master.subscribed(id)},
          {"recovered", false},
          {"registered_time", seconds_of(record.registered_at)},
          {"reregistered_time", seconds_of(record.reregistered_at)},
          {"unregistered_time", record.removed_at ? seconds_of(*record.removed_at) : 0.0},
          {"resources", view(allocated)},
          {"used_resources", view(used)},
          {"offered_resources", view(offered)}};
}

json view_slave(const Services& services) {
  const auto& master = *services.mesos;
  const auto node = services.daemon->node();
  control::Amounts offered;
  for (const auto& [framework, amounts] : master.offered()) offered += amounts;
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
          {"offered_resources", view(offered)},
          {"registered_time", 0.0},
          {"active", true},
          {"deactivated", false},
          {"version", kMesosVersion},
          {"capabilities", {"MULTI_ROLE", "HIERARCHICAL_ROLE", "RESERVATION_REFINEMENT"}}};
}

json view_frameworks(const Services& services, const engine::Caller& caller, bool removed) {
  const auto amounts = amounts_of_frameworks(services);
  json frameworks = json::array();
  for (const auto* row : frameworks_for(services, caller, removed)) {
    auto framework = view_framework(services, *row, amounts);
    add_tasks(services, *row, framework);
    frameworks.push_back(std::move(framework));
  }
  return frameworks;
}

Response compact(const json& value) {
  Response response;
  response.body = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return response;
}

}  // namespace drover::api::mesos

#include "api/mesos/operator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "api/mesos/amounts.h"
#include "api/mesos/master.h"
#include "control/frameworks.h"

namespace drover::api::mesos {
namespace {

using nlohmann::json;

constexpr double kMiB = 1 << 20;

double seconds_of(TimePoint at) {
  return static_cast<double>(at.time_since_epoch().count()) / 1000;
}

Response compact(const json& value) {
  Response response;
  response.body = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return response;
}

json view(const Amounts& amounts) {
  json value = {{"cpus", static_cast<double>(amounts.milli_cpus) / 1000},
                {"disk", std::floor(static_cast<double>(amounts.disk_bytes) / kMiB)},
                {"gpus", static_cast<double>(amounts.gpus)},
                {"mem", std::floor(static_cast<double>(amounts.memory_bytes) / kMiB)}};
  std::vector<std::string> ranges;
  for (const auto& range : amounts.ports) ranges.push_back(fmt::format("{}-{}", range.begin, range.end));
  if (!ranges.empty()) value["ports"] = fmt::format("[{}]", fmt::join(ranges, ", "));
  return value;
}

Amounts amounts_of(const workload::Task& task) {
  Amounts amounts;
  for (const auto& claim : task.resources.gpus) amounts.gpus += claim.count;
  amounts.milli_cpus = task.resources.milli_cpus;
  amounts.memory_bytes = task.resources.memory_bytes;
  for (const auto& port : task.network.ports)
    if (port.host_port != 0) amounts += Amounts{0, 0, 0, 0, {{port.host_port, port.host_port}}};
  return amounts;
}

/// Everything that runs here, whoever asked for it.
Amounts used_by_all(const control::State& state) {
  Amounts used;
  for (const auto& id : state.active) used += amounts_of(state.tasks.at(id).task);
  return used;
}

Amounts total_of(const engine::NodeView& node) {
  return {node.gpus_total,
          node.milli_cpus_total,
          node.memory_bytes_total,
          node.disk_bytes,
          {{node.port_begin, node.port_end}}};
}

json attributes_of(const control::State& state) {
  json attributes = json::object();
  for (const auto& [name, values] : state.machine().attributes)
    attributes[name] = fmt::format("{}", fmt::join(values, ","));
  return attributes;
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
  json statuses = json::array();
  if (record.started_at)
    statuses.push_back({{"state", "TASK_RUNNING"}, {"timestamp", seconds_of(*record.started_at)}});
  if (record.finished_at)
    statuses.push_back({{"state", name}, {"timestamp", seconds_of(*record.finished_at)}});
  json gpus = json::array();
  for (const auto& uuid : control::uuids_of(record)) gpus.push_back(uuid);
  return {{"id", origin.task_id},
          {"name", record.task.name},
          {"framework_id", origin.name},
          {"executor_id", executor == origin.task_id ? "" : executor},
          {"slave_id", master.agent_id()},
          {"state", name},
          {"resources", view(amounts_of(record.task))},
          {"role", "*"},
          {"user", record.task.user.name},
          {"statuses", std::move(statuses)},
          {"directory", sandbox_path(master, record, executor)},
          {"gpu_uuids", std::move(gpus)}};
}

json view_framework(const Services& services, const std::string& id, const control::FrameworkRecord& record) {
  const auto& master = *services.mesos;
  const auto& state = services.daemon->state();
  auto info = json::parse(record.info, nullptr, false);
  if (!info.is_object()) info = json::object();
  json tasks = json::array();
  json completed = json::array();
  Amounts used;
  if (const auto found = state.by_origin.find({workload::OriginKind::kFramework, id});
      found != state.by_origin.end())
    for (const auto& task : found->second) {
      const auto& one = state.tasks.at(task);
      (control::is_final(one.state) ? completed : tasks).push_back(view_task(master, state, one, record));
      if (control::owns_resources(one.state)) used += amounts_of(one.task);
    }
  json capabilities = json::array();
  for (const auto& capability : info.value("capabilities", json::array()))
    capabilities.push_back(capability.value("type", "UNKNOWN"));
  const auto offered = master.offered();
  const auto found = offered.find(id);
  const auto offers = found == offered.end() ? Amounts{} : found->second;
  auto allocated = used;
  allocated += offers;
  return {{"id", id},
          {"name", record.name},
          {"user", record.user},
          {"principal", info.value("principal", "")},
          {"role", info.value("role", "*")},
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
          {"offered_resources", view(offers)},
          {"tasks", std::move(tasks)},
          {"completed_tasks", std::move(completed)},
          {"unreachable_tasks", json::array()},
          {"executors", json::array()},
          {"offers", json::array()}};
}

json view_slave(const Services& services) {
  const auto& master = *services.mesos;
  const auto node = services.daemon->node();
  Amounts offered;
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
          {"used_resources", view(used_by_all(services.daemon->state()))},
          {"offered_resources", view(offered)},
          {"registered_time", 0.0},
          {"active", true},
          {"deactivated", false},
          {"version", kMesosVersion},
          {"capabilities", {"MULTI_ROLE", "HIERARCHICAL_ROLE", "RESERVATION_REFINEMENT"}}};
}

/// Those that the caller may see: living ones, or removed ones.
json view_frameworks(const Services& services, const Request& request, bool removed) {
  json frameworks = json::array();
  for (const auto& [id, record] : services.daemon->state().frameworks)
    if (may_see(*request.caller, record) && record.removed_at.has_value() == removed)
      frameworks.push_back(view_framework(services, id, record));
  return frameworks;
}

}  // namespace

Result<Response> get_version(const Services&, const Request&) {
  return compact(
      {{"build_date", ""}, {"build_time", 0.0}, {"build_user", "drover"}, {"version", kMesosVersion}});
}

Result<Response> get_state(const Services& services, const Request& request) {
  const auto& master = *services.mesos;
  const auto& options = master.options();
  const auto pid = fmt::format("master@{}:{}", options.ip, options.port);
  return compact(
      {{"version", kMesosVersion},
       {"build_date", ""},
       {"build_time", 0.0},
       {"build_user", "drover"},
       {"start_time", 0.0},
       {"elected_time", 0.0},
       {"id", master.id()},
       {"pid", pid},
       {"hostname", options.hostname},
       {"leader", pid},
       {"leader_info",
        {{"id", master.id()}, {"pid", pid}, {"port", options.port}, {"hostname", options.hostname}}},
       {"activated_slaves", 1.0},
       {"deactivated_slaves", 0.0},
       {"unreachable_slaves", 0.0},
       {"flags", {{"filter_gpu_resources", options.filter_gpu_resources ? "true" : "false"}}},
       {"slaves", json::array({view_slave(services)})},
       {"recovered_slaves", json::array()},
       {"frameworks", view_frameworks(services, request, false)},
       {"completed_frameworks", view_frameworks(services, request, true)},
       {"orphan_tasks", json::array()},
       {"unregistered_frameworks", json::array()}});
}

Result<Response> get_slaves(const Services& services, const Request&) {
  return compact({{"slaves", json::array({view_slave(services)})}, {"recovered_slaves", json::array()}});
}

Result<Response> get_frameworks(const Services& services, const Request& request) {
  return compact({{"frameworks", view_frameworks(services, request, false)},
                  {"completed_frameworks", view_frameworks(services, request, true)},
                  {"unregistered_frameworks", json::array()}});
}

Result<Response> get_tasks(const Services& services, const Request& request) {
  json tasks = json::array();
  for (const bool removed : {false, true})
    for (auto& framework : view_frameworks(services, request, removed))
      for (const auto* list : {"tasks", "completed_tasks"})
        for (auto& task : framework[list]) tasks.push_back(std::move(task));
  return compact({{"tasks", std::move(tasks)}});
}

Result<Response> get_metrics(const Services& services, const Request&) {
  const auto& state = services.daemon->state();
  const auto total = total_of(services.daemon->node());
  const auto used = used_by_all(state);
  json metrics = json::object();
  const auto add = [&](const std::string& name, double all, double taken) {
    for (const auto* side : {"master/", "slave/"}) {
      metrics[side + name + "_total"] = all;
      metrics[side + name + "_used"] = taken;
      metrics[side + name + "_percent"] = all == 0 ? 0.0 : taken / all;
      for (const auto* revocable : {"_revocable_total", "_revocable_used", "_revocable_percent"})
        metrics[side + name + revocable] = 0.0;
    }
  };
  add("gpus", total.gpus, used.gpus);
  add("cpus", static_cast<double>(total.milli_cpus) / 1000, static_cast<double>(used.milli_cpus) / 1000);
  add("mem", static_cast<double>(total.memory_bytes) / kMiB, static_cast<double>(used.memory_bytes) / kMiB);
  add("disk", static_cast<double>(total.disk_bytes) / kMiB, 0);
  std::map<std::string, int> tasks;
  for (const auto* name :
       {"staging", "starting", "running", "killing", "finished", "failed", "killed", "lost", "error"})
    tasks[name] = 0;
  for (const auto& [id, record] : state.tasks) {
    auto name = control::mesos_state(record, {}).substr(5);
    for (auto& c : name) c = static_cast<char>(c - 'A' + 'a');
    ++tasks[name];
  }
  for (const auto& [name, count] : tasks) metrics["master/tasks_" + name] = static_cast<double>(count);
  int connected = 0, known = 0;
  for (const auto& [id, record] : state.frameworks) {
    if (record.removed_at) continue;
    ++known;
    connected += services.mesos->subscribed(id) ? 1 : 0;
  }
  metrics["master/elected"] = 1.0;
  metrics["master/slaves_active"] = metrics["master/slaves_connected"] = 1.0;
  metrics["master/slaves_inactive"] = metrics["master/slaves_disconnected"] = 0.0;
  metrics["master/frameworks_active"] = metrics["master/frameworks_connected"] =
      static_cast<double>(connected);
  metrics["master/frameworks_inactive"] = metrics["master/frameworks_disconnected"] =
      static_cast<double>(known - connected);
  metrics["master/outstanding_offers"] = static_cast<double>(services.mesos->offered().size());
  return compact(metrics);
}

Result<Response> get_redirect(const Services& services, const Request&) {
  const auto& options = services.mesos->options();
  Response response;
  response.status = 307;
  response.content_type = "";
  response.headers.emplace_back("Location", fmt::format("//{}:{}", options.hostname, options.port));
  return response;
}

}  // namespace drover::api::mesos

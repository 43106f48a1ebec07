#include "api/mesos/operator.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/mesos/call.h"
#include "api/mesos/values.h"
#include "api/mesos/views.h"
#include "control/frameworks.h"

namespace drover::api::mesos {
namespace {

using nlohmann::json;

json flags_of(const Master& master) {
  return {{"filter_gpu_resources", master.options().filter_gpu_resources ? "true" : "false"},
          {"port", std::to_string(master.options().port)}};
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
       {"flags", flags_of(master)},
       {"slaves", json::array({view_slave(services)})},
       {"recovered_slaves", json::array()},
       {"frameworks", view_frameworks(services, *request.caller, false)},
       {"completed_frameworks", view_frameworks(services, *request.caller, true)},
       {"orphan_tasks", json::array()},
       {"unregistered_frameworks", json::array()}});
}

Result<Response> get_slaves(const Services& services, const Request&) {
  return compact({{"slaves", json::array({view_slave(services)})}, {"recovered_slaves", json::array()}});
}

Result<Response> get_frameworks(const Services& services, const Request& request) {
  return compact({{"frameworks", view_frameworks(services, *request.caller, false)},
                  {"completed_frameworks", view_frameworks(services, *request.caller, true)},
                  {"unregistered_frameworks", json::array()}});
}

Result<Response> get_tasks(const Services& services, const Request& request) {
  json tasks = json::array();
  for (const bool removed : {false, true})
    for (auto& framework : view_frameworks(services, *request.caller, removed))
      for (const auto* list : {"tasks", "completed_tasks"})
        for (auto& task : framework[list]) tasks.push_back(std::move(task));
  return compact({{"tasks", std::move(tasks)}});
}

Result<Response> get_metrics(const Services& services, const Request&) {
  const auto& state = services.daemon->state();
  const auto total = total_of(services.daemon->node());
  const auto used = control::held_by_all(state);
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

Result<Response> get_flags(const Services& services, const Request&) {
  return compact({{"flags", flags_of(*services.mesos)}});
}

Result<Response> get_health(const Services&, const Request&) {
  return text_response(200, "");
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

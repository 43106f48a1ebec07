// What monitoring reads: /metrics/snapshot and /system/stats.json. Only what is really counted: a figure that
// is made up looks like an outage, or hides one.

#include <sys/sysinfo.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "api/mesos/operator.h"
#include "api/mesos/values.h"
#include "api/mesos/views.h"
#include "control/frameworks.h"

namespace drover::api::mesos {
namespace {

using control::TaskState;
using nlohmann::json;

void count_resources(const Snapshot& snapshot, json& metrics) {
  const auto whole = whole_of(snapshot);
  const auto total = total_of(whole.agent.node);
  const auto& used = whole.used;
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
}

void count_by_state(const control::State& state, json& metrics) {
  std::map<std::string, int> counts;
  for (const auto* name :
       {"staging", "starting", "running", "killing", "finished", "failed", "killed", "lost", "error"})
    counts[name] = 0;
  for (const auto& [id, record] : state.tasks) {
    auto name = control::mesos_state(record, {}).substr(5);
    for (auto& c : name) c = static_cast<char>(c - 'A' + 'a');
    ++counts[name];
  }
  for (const auto& [name, count] : counts) {
    metrics["master/tasks_" + name] = static_cast<double>(count);
    if (name != "error") metrics["slave/tasks_" + name] = static_cast<double>(count);
  }
}

/// Tasks of a group have one executor, all others have one each.
void count_executors(const control::State& state, json& metrics) {
  std::map<TaskState, std::set<std::pair<std::string, std::string>>> executors;
  std::set<control::OriginName> frameworks;
  for (const auto& id : state.active) {
    const auto& record = state.tasks.at(id);
    const auto& origin = record.task.origin;
    const bool launched = origin.kind == workload::OriginKind::kFramework;
    executors[record.state].insert(launched ? std::pair(origin.name, executor_of(state, record))
                                            : std::pair(std::string(), id));
    // Apps are those of one framework, as are the runs of schedules.
    if (origin.kind != workload::OriginKind::kPerson)
      frameworks.emplace(origin.kind, launched ? origin.name : "");
  }
  const auto count = [&](TaskState one) { return static_cast<double>(executors[one].size()); };
  metrics["slave/executors_registering"] = count(TaskState::kStarting);
  metrics["slave/executors_running"] = count(TaskState::kRunning);
  metrics["slave/executors_terminating"] = count(TaskState::kStopping);
  metrics["slave/frameworks_active"] = static_cast<double>(frameworks.size());
}

void count_frameworks(const Snapshot& snapshot, json& metrics) {
  int connected = 0, known = 0;
  for (const auto& [id, record] : snapshot.state->frameworks) {
    if (record.removed_at) continue;
    ++known;
    connected += snapshot.connected.contains(id) ? 1 : 0;
  }
  for (const auto* name : {"master/frameworks_active", "master/frameworks_connected"})
    metrics[name] = static_cast<double>(connected);
  for (const auto* name : {"master/frameworks_inactive", "master/frameworks_disconnected"})
    metrics[name] = static_cast<double>(known - connected);
}

/// Of the whole machine; what the kernel does not say is left out.
struct SystemFigures {
  double cpus = 0;
  std::optional<std::array<double, 3>> load;  ///< of the last minute, 5, and 15
  std::optional<double> memory_bytes, free_bytes;
};

SystemFigures measure_system() {
  SystemFigures figures;
  figures.cpus = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  std::array<double, 3> load{};
  if (::getloadavg(load.data(), 3) == 3) figures.load = load;
  struct sysinfo info{};
  if (::sysinfo(&info) == 0) {
    figures.memory_bytes = static_cast<double>(info.totalram) * info.mem_unit;
    figures.free_bytes = static_cast<double>(info.freeram) * info.mem_unit;
  }
  return figures;
}

json view_system(const std::string& prefix, const std::string& load_prefix) {
  const auto figures = measure_system();
  json view = {{prefix + "cpus_total", figures.cpus}};
  if (figures.load) {
    view[load_prefix + "1min"] = figures.load->at(0);
    view[load_prefix + "5min"] = figures.load->at(1);
    view[load_prefix + "15min"] = figures.load->at(2);
  }
  if (figures.memory_bytes) view[prefix + "mem_total_bytes"] = *figures.memory_bytes;
  if (figures.free_bytes) view[prefix + "mem_free_bytes"] = *figures.free_bytes;
  return view;
}

}  // namespace

json view_metrics(const Snapshot& snapshot) {
  json metrics = view_system("system/", "system/load_");
  count_resources(snapshot, metrics);
  count_by_state(*snapshot.state, metrics);
  count_executors(*snapshot.state, metrics);
  count_frameworks(snapshot, metrics);
  const auto uptime = seconds_of(snapshot.now) - seconds_of(snapshot.started_at);
  metrics["master/uptime_secs"] = metrics["slave/uptime_secs"] = uptime;
  metrics["master/elected"] = metrics["slave/registered"] = 1.0;
  metrics["master/slaves_active"] = metrics["master/slaves_connected"] = 1.0;
  metrics["master/slaves_inactive"] = metrics["master/slaves_disconnected"] = 0.0;
  metrics["master/outstanding_offers"] = static_cast<double>(snapshot.offered.size());
  return metrics;
}

Result<Response> write_metrics(const Snapshot& snapshot, const Request&) {
  return compact(view_metrics(snapshot));
}

Result<Response> get_system_stats(const Services&, const Request&) {
  auto stats = view_system("", "avg_load_");
  // Whole numbers here, and with a point among the metrics: clients read them into integers.
  for (const auto* name : {"cpus_total", "mem_total_bytes", "mem_free_bytes"})
    if (stats.contains(name)) stats[name] = static_cast<std::int64_t>(stats[name].get<double>());
  return compact(stats);
}

}  // namespace drover::api::mesos

// What tools read of an agent, below /slave(1): of the machine itself, or of a cluster as if it were one.

#include <nlohmann/json.hpp>

#include "api/mesos/operator.h"
#include "api/mesos/values.h"
#include "api/mesos/views.h"
#include "control/frameworks.h"

namespace drover::api::mesos {
namespace {

using control::TaskRecord;
using nlohmann::json;

/// What says which task it is; the master's state has the rest beside it.
void write_briefly(JsonWriter& writer, const Snapshot& snapshot, const SeenFramework& framework,
                   const TaskRecord& record, std::string_view executor) {
  const auto& id = record.task.origin.task_id;
  writer.begin_object();
  writer.field("executor_id", executor == id ? std::string_view() : executor);
  writer.field("framework_id", framework.id);
  writer.field("id", id);
  writer.field("name", task_name(record));
  writer.field("slave_id", control::agent_of(*snapshot.state, record));
  writer.field("state", control::mesos_state(record, framework.record));
  writer.end_object();
}

/// The list of an executor that a task stands in.
const char* task_list_of(const TaskRecord& record) {
  if (control::is_final(record.state)) return "completed_tasks";
  return record.state == control::TaskState::kQueued ? "queued_tasks" : "tasks";
}

void write_executor(JsonWriter& writer, const Snapshot& snapshot, const SeenFramework& framework,
                    const SeenExecutor& executor, bool with_tasks) {
  writer.begin_object();
  writer.field("container", executor.shown->task.id);
  writer.field("directory", sandbox_path(snapshot, framework.id, *executor.shown, executor.id));
  writer.field("id", executor.id);
  writer.field("name", executor.name());
  writer.key("resources");
  write(writer, executor.used);
  writer.field("source", executor.id);
  writer.field("type", executor.own ? "CUSTOM" : executor.of_group ? "DEFAULT" : "");
  for (const std::string_view list : {"completed_tasks", "queued_tasks", "tasks"}) {
    writer.key(list);
    writer.begin_array();
    for (const auto* record : executor.tasks)
      if (task_list_of(*record) != list)
        continue;
      else if (with_tasks)
        write_task(writer, snapshot, framework, *record);
      else
        write_briefly(writer, snapshot, framework, *record, executor.id);
    writer.end_array();
  }
  writer.end_object();
}

/// Those of `/slave(1)/state`.
void write_with_executors(JsonWriter& writer, const Snapshot& snapshot,
                          const std::vector<SeenFramework>& frameworks) {
  writer.begin_array();
  for (const auto& framework : frameworks) {
    writer.begin_object();
    writer.field("id", framework.id);
    writer.field("name", framework.record.name);
    writer.field("user", framework.record.user);
    write_executors(writer, snapshot, framework, true);
    writer.end_object();
  }
  writer.end_array();
}

/// What is not measured is left out.
json view_statistics(const workload::Task& task, const use::Latest& latest, TimePoint now) {
  json statistics = {{"timestamp", latest.time == 0 ? seconds_of(now) : static_cast<double>(latest.time)}};
  const auto& reading = latest.reading;
  const auto& counters = reading.counters;
  if (reading.user_seconds) statistics["cpus_user_time_secs"] = *reading.user_seconds;
  if (reading.system_seconds) statistics["cpus_system_time_secs"] = *reading.system_seconds;
  if (reading.memory_rss) statistics["mem_rss_bytes"] = *reading.memory_rss;
  if (reading.memory_total) statistics["mem_total_bytes"] = *reading.memory_total;
  if (counters.network_received != use::kUncounted) statistics["net_rx_bytes"] = counters.network_received;
  if (counters.network_sent != use::kUncounted) statistics["net_tx_bytes"] = counters.network_sent;
  if (const auto most = task.most_milli_cpus(); most > 0)
    statistics["cpus_limit"] = static_cast<double>(most) / 1000;
  if (const auto most = task.most_memory_bytes(); most > 0) statistics["mem_limit_bytes"] = most;
  return statistics;
}

json view_container(const std::string& framework, const TaskRecord& record, const std::string& executor,
                    json statistics) {
  const auto& task = record.task;
  return {{"framework_id", framework},
          {"executor_id", executor},
          {"executor_name", task_name(record)},
          {"source", task.origin.task_id},
          {"container_id", task.id},
          {"status", {{"container_id", {{"value", task.id}}}}},
          {"statistics", std::move(statistics)}};
}

}  // namespace

void write_executors(JsonWriter& writer, const Snapshot& snapshot, const SeenFramework& framework,
                     bool with_tasks) {
  const auto executors = executors_of(snapshot, framework);
  for (const bool alive : {true, false}) {
    writer.key(alive ? "executors" : "completed_executors");
    writer.begin_array();
    for (const auto& executor : executors)
      if (executor.alive == alive) write_executor(writer, snapshot, framework, executor, with_tasks);
    writer.end_array();
  }
}

Result<Response> write_agent_state(const Snapshot& snapshot, const Request&) {
  const auto frameworks = frameworks_for(snapshot, false);
  const auto completed = frameworks_for(snapshot, true);
  Response response;
  response.body.reserve(room_for(frameworks) + room_for(completed));
  JsonWriter writer(response.body);
  writer.begin_object();
  auto facts = view_slave(snapshot, whole_of(snapshot));
  facts.update(view_version());
  writer.fields(facts);
  writer.fields({{"master_hostname", snapshot.options.hostname},
                 {"flags", json::object()},
                 {"start_time", seconds_of(snapshot.started_at)}});
  writer.key("frameworks");
  write_with_executors(writer, snapshot, frameworks);
  writer.key("completed_frameworks");
  write_with_executors(writer, snapshot, completed);
  writer.end_object();
  return response;
}

void each_container(const Snapshot& snapshot, const std::function<void(json)>& visit) {
  const auto latest = snapshot.latest_use ? snapshot.latest_use() : std::map<std::string, use::Latest>();
  for (const bool removed : {false, true})
    for (const auto& framework : frameworks_for(snapshot, removed))
      for (const auto* record : framework.containers) {
        if (!control::owns_resources(record->state)) continue;
        const auto seen = latest.find(record->task.id);
        visit(
            view_container(framework.id, *record, executor_of(*snapshot.state, *record),
                           view_statistics(record->task, seen == latest.end() ? use::Latest{} : seen->second,
                                           snapshot.now)));
      }
}

Result<Response> write_containers(const Snapshot& snapshot, const Request&) {
  Response response;
  JsonWriter writer(response.body);
  writer.begin_array();
  each_container(snapshot, [&](const json& container) {
    writer.begin_object();
    writer.fields(container);
    writer.end_object();
  });
  writer.end_array();
  return response;
}

}  // namespace drover::api::mesos

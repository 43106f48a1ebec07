// What tools read of an agent, below /slave(1): of the machine itself, for there is but one.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "api/mesos/operator.h"
#include "api/mesos/views.h"
#include "control/frameworks.h"

namespace drover::api::mesos {
namespace {

using control::TaskRecord;
using nlohmann::json;

/// The tasks of a framework by their executors.
using Executors = std::map<std::string, std::vector<const TaskRecord*>>;

Executors executors_of(const control::State& state, const std::string& framework) {
  Executors executors;
  const auto found = state.by_origin.find({workload::OriginKind::kFramework, framework});
  if (found == state.by_origin.end()) return executors;
  for (const auto& id : found->second) {
    const auto& record = state.tasks.at(id);
    executors[executor_of(state, record)].push_back(&record);
  }
  return executors;
}

bool any_alive(const std::vector<const TaskRecord*>& tasks) {
  for (const auto* record : tasks)
    if (!control::is_final(record->state)) return true;
  return false;
}

json view_executor(const Services& services, const control::FrameworkRecord& framework, const std::string& id,
                   const std::vector<const TaskRecord*>& records) {
  const auto& master = *services.mesos;
  const auto& state = services.daemon->state();
  json tasks = json::array();
  json queued = json::array();
  json completed = json::array();
  control::Amounts used;
  for (const auto* record : records) {
    auto task = view_task(master, state, *record, framework);
    if (control::owns_resources(record->state)) used += control::held_by(*record);
    if (control::is_final(record->state))
      completed.push_back(std::move(task));
    else if (record->state == control::TaskState::kQueued)
      queued.push_back(std::move(task));
    else
      tasks.push_back(std::move(task));
  }
  // One that lives, if any does: the id may have been used before.
  const auto living =
      std::ranges::find_if(records, [](const auto* record) { return !control::is_final(record->state); });
  const auto& first = living == records.end() ? *records.back() : **living;
  const bool single = first.task.origin.task_id == id;
  return {{"id", id},
          {"name", single ? fmt::format("Command Executor (Task: {})", id) : ""},
          {"source", id},
          {"type", single ? "" : "DEFAULT"},
          {"container", first.task.id},
          {"directory", sandbox_path(master, first, id)},
          {"resources", view(used)},
          {"tasks", std::move(tasks)},
          {"queued_tasks", std::move(queued)},
          {"completed_tasks", std::move(completed)}};
}

/// One of `/slave(1)/state`.
json view_framework_of_agent(const Services& services, const std::string& id,
                             const control::FrameworkRecord& record) {
  json executors = json::array();
  json completed = json::array();
  for (const auto& [executor, records] : executors_of(services.daemon->state(), id))
    (any_alive(records) ? executors : completed)
        .push_back(view_executor(services, record, executor, records));
  return {{"id", id},
          {"name", record.name},
          {"user", record.user},
          {"executors", std::move(executors)},
          {"completed_executors", std::move(completed)}};
}

json view_container(const TaskRecord& record, const std::string& executor) {
  const auto held = control::held_by(record);
  const auto started = record.started_at.value_or(TimePoint{});
  return {{"framework_id", record.task.origin.name},
          {"executor_id", executor},
          {"executor_name", record.task.name},
          {"source", record.task.origin.task_id},
          {"container_id", record.task.id},
          {"status", {{"container_id", {{"value", record.task.id}}}}},
          {"statistics",
           {{"cpus_limit", static_cast<double>(held.milli_cpus) / 1000},
            {"mem_limit_bytes", held.memory_bytes},
            {"timestamp", static_cast<double>(started.time_since_epoch().count()) / 1000}}}};
}

}  // namespace

Result<Response> get_agent_state(const Services& services, const Request& request) {
  json frameworks = json::array();
  json completed = json::array();
  for (const auto& [id, record] : services.daemon->state().frameworks) {
    if (!may_see(*request.caller, record)) continue;
    auto& list = record.removed_at ? completed : frameworks;
    list.push_back(view_framework_of_agent(services, id, record));
  }
  auto state = view_slave(services);
  const auto& options = services.mesos->options();
  state["master_hostname"] = options.hostname;
  state["flags"] = json::object();
  state["build_date"] = "";
  state["build_time"] = 0.0;
  state["build_user"] = "drover";
  state["start_time"] = 0.0;
  state["frameworks"] = std::move(frameworks);
  state["completed_frameworks"] = std::move(completed);
  return compact(state);
}

Result<Response> get_containers(const Services& services, const Request& request) {
  const auto& state = services.daemon->state();
  json containers = json::array();
  for (const auto& [id, framework] : state.frameworks) {
    if (!may_see(*request.caller, framework)) continue;
    for (const auto& [executor, records] : executors_of(state, id))
      for (const auto* record : records)
        if (control::owns_resources(record->state)) containers.push_back(view_container(*record, executor));
  }
  return compact(containers);
}

}  // namespace drover::api::mesos

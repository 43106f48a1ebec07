// What tools read of an agent, below /slave(1): of the machine itself, for there is but one.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "api/mesos/operator.h"
#include "api/mesos/values.h"
#include "api/mesos/views.h"
#include "control/frameworks.h"

namespace drover::api::mesos {
namespace {

using control::TaskRecord;
using nlohmann::json;

/// The tasks of a framework by their executors.
using Executors = std::map<std::string, std::vector<const TaskRecord*>>;

Executors executors_of(const Services& services, const SeenFramework& framework) {
  Executors executors;
  for (const auto* record : framework.tasks)
    executors[executor_of(services.daemon->state(), *record)].push_back(record);
  return executors;
}

bool any_alive(const std::vector<const TaskRecord*>& tasks) {
  for (const auto* record : tasks)
    if (!control::is_final(record->state)) return true;
  return false;
}

/// What says which task it is; the master's state has the rest beside it.
json view_briefly(const Services& services, const SeenFramework& framework, const TaskRecord& record,
                  const std::string& executor) {
  const auto& id = record.task.origin.task_id;
  return {{"id", id},
          {"name", task_name(record)},
          {"framework_id", framework.id},
          {"executor_id", executor == id ? "" : executor},
          {"slave_id", services.mesos->agent_id()},
          {"state", control::mesos_state(record, framework.record)}};
}

json view_executor(const Services& services, const SeenFramework& framework, const std::string& id,
                   const std::vector<const TaskRecord*>& records, bool with_tasks) {
  json tasks = json::array();
  json queued = json::array();
  json completed = json::array();
  control::Amounts used;
  for (const auto* record : records) {
    auto task =
        with_tasks ? view_task(services, framework, *record) : view_briefly(services, framework, *record, id);
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
          {"directory", sandbox_path(*services.mesos, framework.id, first, id)},
          {"resources", view(used)},
          {"tasks", std::move(tasks)},
          {"queued_tasks", std::move(queued)},
          {"completed_tasks", std::move(completed)}};
}

/// One of `/slave(1)/state`.
json view_with_executors(const Services& services, const SeenFramework& framework) {
  json view = {{"id", framework.id}, {"name", framework.record.name}, {"user", framework.record.user}};
  add_executors(services, framework, true, view);
  return view;
}

/// Of usage only the limits: what is not measured is left out.
json view_container(const std::string& framework, const TaskRecord& record, const std::string& executor,
                    TimePoint now) {
  const auto held = control::held_by(record);
  return {{"framework_id", framework},
          {"executor_id", executor},
          {"executor_name", task_name(record)},
          {"source", record.task.origin.task_id},
          {"container_id", record.task.id},
          {"status", {{"container_id", {{"value", record.task.id}}}}},
          {"statistics",
           {{"cpus_limit", static_cast<double>(held.milli_cpus) / 1000},
            {"mem_limit_bytes", held.memory_bytes},
            {"timestamp", seconds_of(now)}}}};
}

}  // namespace

void add_executors(const Services& services, const SeenFramework& framework, bool with_tasks, json& view) {
  json executors = json::array();
  json completed = json::array();
  for (const auto& [executor, records] : executors_of(services, framework))
    (any_alive(records) ? executors : completed)
        .push_back(view_executor(services, framework, executor, records, with_tasks));
  view["executors"] = std::move(executors);
  view["completed_executors"] = std::move(completed);
}

Result<Response> get_agent_state(const Services& services, const Request& request) {
  json frameworks = json::array();
  json completed = json::array();
  for (const bool removed : {false, true})
    for (const auto& framework : frameworks_for(services, *request.caller, removed))
      (removed ? completed : frameworks).push_back(view_with_executors(services, framework));
  auto state = view_slave(services);
  const auto& options = services.mesos->options();
  state["master_hostname"] = options.hostname;
  state["flags"] = json::object();
  state["build_date"] = "";
  state["build_time"] = 0.0;
  state["build_user"] = "drover";
  state["start_time"] = seconds_of(services.mesos->started_at());
  state["frameworks"] = std::move(frameworks);
  state["completed_frameworks"] = std::move(completed);
  return compact(state);
}

Result<Response> get_containers(const Services& services, const Request& request) {
  json containers = json::array();
  for (const bool removed : {false, true})
    for (const auto& framework : frameworks_for(services, *request.caller, removed))
      for (const auto& [executor, records] : executors_of(services, framework))
        for (const auto* record : records)
          if (control::owns_resources(record->state))
            containers.push_back(view_container(framework.id, *record, executor, services.daemon->now()));
  return compact(containers);
}

}  // namespace drover::api::mesos

// What tools read of an agent, below /slave(1): of the machine itself, for there is but one.

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

json view_executor(const Services& services, const SeenFramework& framework, const SeenExecutor& executor,
                   bool with_tasks) {
  json tasks = json::array();
  json queued = json::array();
  json completed = json::array();
  for (const auto* record : executor.tasks) {
    auto task = with_tasks ? view_task(services, framework, *record)
                           : view_briefly(services, framework, *record, executor.id);
    if (control::is_final(record->state))
      completed.push_back(std::move(task));
    else if (record->state == control::TaskState::kQueued)
      queued.push_back(std::move(task));
    else
      tasks.push_back(std::move(task));
  }
  return {{"id", executor.id},
          {"name", executor.name},
          {"source", executor.id},
          {"type", executor.of_group ? "DEFAULT" : ""},
          {"container", executor.shown->task.id},
          {"directory", sandbox_path(*services.mesos, framework.id, *executor.shown, executor.id)},
          {"resources", view(executor.used)},
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
  const auto& task = record.task;
  json statistics = {{"timestamp", seconds_of(now)}};
  if (const auto most = task.most_milli_cpus(); most > 0)
    statistics["cpus_limit"] = static_cast<double>(most) / 1000;
  if (const auto most = task.most_memory_bytes(); most > 0) statistics["mem_limit_bytes"] = most;
  return {{"framework_id", framework},
          {"executor_id", executor},
          {"executor_name", task_name(record)},
          {"source", task.origin.task_id},
          {"container_id", task.id},
          {"status", {{"container_id", {{"value", task.id}}}}},
          {"statistics", std::move(statistics)}};
}

}  // namespace

void add_executors(const Services& services, const SeenFramework& framework, bool with_tasks, json& view) {
  json executors = json::array();
  json completed = json::array();
  for (const auto& executor : executors_of(services, framework))
    (executor.alive ? executors : completed)
        .push_back(view_executor(services, framework, executor, with_tasks));
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

json view_containers(const Services& services, const engine::Caller& caller) {
  json containers = json::array();
  for (const bool removed : {false, true})
    for (const auto& framework : frameworks_for(services, caller, removed))
      for (const auto* record : framework.tasks)
        if (control::owns_resources(record->state))
          containers.push_back(view_container(
              framework.id, *record, executor_of(services.daemon->state(), *record), services.daemon->now()));
  return containers;
}

Result<Response> get_containers(const Services& services, const Request& request) {
  return compact(view_containers(services, *request.caller));
}

}  // namespace drover::api::mesos

#include "api/marathon/events.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/marathon/views.h"
#include "api/sse.h"
#include "base/json_text.h"
#include "control/agents.h"
#include "marathon/app.h"
#include "marathon/path.h"

namespace drover::api::marathon_v2 {

using control::TaskRecord;
using control::TaskState;
using nlohmann::json;
namespace notice = control::notice;

namespace {

WireEvent event(const char* type, std::optional<uid_t> owner, json fields, TimePoint now) {
  fields["eventType"] = type;
  fields["timestamp"] = format_time(now);
  const auto text = to_text(fields);
  return {type, owner, sse_event(type, "", text)};
}

std::string_view condition_of(const TaskRecord& task) {
  switch (task.state) {
    case TaskState::kQueued:
      return "Scheduled";
    case TaskState::kStarting:
      return "Starting";
    case TaskState::kRunning:
      return "Running";
    case TaskState::kStopping:
      return "Killing";
    case TaskState::kFinished:
      return "Finished";
    case TaskState::kFailed:
      return "Failed";
    case TaskState::kKilled:
      return "Killed";
    case TaskState::kLost:
      return "Gone";
  }
  return "Unknown";
}

std::string message_of(const TaskRecord& task) {
  if (!task.reason.empty()) return failure_message(task.reason);
  return task.exit_status ? "Command exited with status " + std::to_string(*task.exit_status) : "";
}

/// Mesos never heard of it, so it has no status: it ended while it waited for its first start.
bool never_launched(const notice::TaskMoved& moved) {
  const auto& task = moved.record;
  const bool waited = moved.before.value_or(TaskState::kQueued) == TaskState::kQueued;
  return waited && control::is_final(task.state) && control::attempt_of(task) == 0;
}

/// The health check as its app's definition shows it.
json shown_check(const workload::Service& service, int index) {
  const auto definition = json::parse(service.definition, nullptr, false);
  const auto at = static_cast<std::size_t>(index);
  if (!definition.is_object() || !definition.contains("healthChecks") ||
      definition["healthChecks"].size() <= at)
    return json::object();
  return definition["healthChecks"][at];
}

class Events {
 public:
  Events(const control::State& state, const std::string& ip, TimePoint now)
      : state_(state), ip_(ip), now_(now) {}

  std::vector<WireEvent> take() { return std::move(events_); }

  void operator()(const notice::TaskMoved& moved) {
    const auto& task = moved.record;
    const auto& origin = task.task.origin;
    if (origin.kind != workload::OriginKind::kService || moved.before == task.state) return;
    if (task.state != TaskState::kQueued && !never_launched(moved))
      add("status_update_event", task.task.owner,
          {{"slaveId", control::agent_of(state_, task)},
           {"taskId", origin.task_id},
           {"taskStatus", control::mesos_state(task.state)},
           {"message", message_of(task)},
           {"appId", origin.name},
           {"host", control::host_of(task, state_.node)},
           {"ipAddresses", ip_addresses(task, ip_)},
           {"ports", task.ports},
           {"version", origin.version}});
    add("instance_changed_event", task.task.owner,
        {{"instanceId", instance_id(task)},
         {"condition", condition_of(task)},
         {"runSpecId", origin.name},
         {"agentId", control::agent_of(state_, task)},
         {"host", control::host_of(task, state_.node)},
         {"runSpecVersion", origin.version}});
  }

  void operator()(const notice::HealthChanged& changed) {
    const auto* task = state_.find(changed.task);
    if (task == nullptr) return;
    add("health_status_changed_event", task->task.owner,
        {{"appId", changed.service},
         {"taskId", task->task.origin.task_id},
         {"instanceId", instance_id(*task)},
         {"version", task->task.origin.version},
         {"alive", changed.alive}});
    add("instance_health_changed_event", task->task.owner,
        {{"instanceId", instance_id(*task)},
         {"runSpecId", changed.service},
         {"runSpecVersion", task->task.origin.version},
         {"healthy", changed.alive}});
  }

  void operator()(const notice::CheckFailed& failed) {
    const auto* task = state_.find(failed.task);
    const auto* service = find(failed.service);
    if (task == nullptr || service == nullptr || failed.check < 0) return;
    add("failed_health_check_event", task->task.owner,
        {{"appId", failed.service},
         {"taskId", task->task.origin.task_id},
         {"instanceId", instance_id(*task)},
         {"healthCheck", shown_check(*service, failed.check)}});
  }

  void operator()(const notice::UnhealthyKilled& killed) {
    const auto* task = state_.find(killed.task);
    if (task == nullptr) return;
    add("unhealthy_instance_kill_event", task->task.owner,
        {{"appId", killed.service},
         {"taskId", task->task.origin.task_id},
         {"instanceId", instance_id(*task)},
         {"version", task->task.origin.version},
         {"reason", killed.why},
         {"host", control::host_of(*task, state_.node)},
         {"slaveId", control::agent_of(state_, *task)}});
  }

  void operator()(const notice::DefinitionsChanged& changed) {
    if (const auto& any = changed.services.empty() ? changed.groups : changed.services; !any.empty())
      add("group_change_success", owner_of(any.front()),
          {{"groupId", changed_group(changed)}, {"version", format_time(changed.version)}});
    for (const auto& id : changed.services) {
      const auto* service = find(id);
      add_removed_checks(id, changed.version);
      if (service == nullptr || service->version != changed.version) continue;
      for (int i = 0; i < static_cast<int>(service->health_checks.size()); ++i)
        add("add_health_check_event", service->task.owner,
            {{"appId", id},
             {"version", format_time(service->version)},
             {"healthCheck", shown_check(*service, i)}});
    }
  }

  void operator()(const notice::ServiceTerminated& terminated) {
    add("app_terminated_event", owner_of(terminated.service), {{"appId", terminated.service}});
  }

  void operator()(const notice::DeploymentStep& step) {
    add("deployment_info", step.deployment.owner,
        {{"plan", plan(step.deployment)}, {"currentStep", current_step(step.deployment)}});
  }

  void operator()(const notice::DeploymentStepDone& done) {
    add("deployment_step_success", done.deployment.owner,
        {{"plan", plan(done.deployment)}, {"currentStep", current_step(done.deployment)}});
  }

  void operator()(const notice::DeploymentEnded& ended) {
    if (!ended.success && ended.deployment.begun)
      add("deployment_step_failure", ended.deployment.owner,
          {{"plan", plan(ended.deployment)}, {"currentStep", current_step(ended.deployment)}});
    add(ended.success ? "deployment_success" : "deployment_failed", ended.deployment.owner,
        {{"id", ended.deployment.id}, {"plan", plan(ended.deployment)}});
  }

  /// What other APIs are told.
  template <typename Other>
  void operator()(const Other&) {}

 private:
  /// Those that the definition before had: they are made no more. Where it has others now, these are added.
  void add_removed_checks(const std::string& id, TimePoint version) {
    const auto found = state_.services.find(id);
    if (found == state_.services.end()) return;
    const auto& record = found->second;
    const workload::Service* before = nullptr;
    if (record.removed)
      before = &record.target;
    else if (record.target.version == version && !record.versions.empty())
      before = &record.versions.front();
    if (before == nullptr) return;
    for (std::size_t i = 0; i < before->health_checks.size(); ++i)
      add("remove_health_check_event", before->task.owner, {{"appId", id}});
  }

  /// The smallest group around all that is different; of one app, the group that it is in.
  static std::string changed_group(const notice::DefinitionsChanged& changed) {
    std::optional<std::string> around;
    const auto take_in = [&](const std::string& group) {
      if (!around) around = group;
      while (!marathon::is_within(group, *around)) around = marathon::parent_path(*around);
    };
    for (const auto& id : changed.services) take_in(marathon::parent_path(id));
    if (changed.services.size() == 1) return *around;
    for (const auto& id : changed.groups) take_in(id);
    return around.value_or("/");
  }

  void add(const char* type, std::optional<uid_t> owner, json fields) {
    events_.push_back(event(type, owner, std::move(fields), now_));
  }

  const workload::Service* find(const std::string& id) const {
    const auto found = state_.services.find(id);
    return found == state_.services.end() ? nullptr : &found->second.target;
  }

  /// Of a service or a group; root's alone when nobody can say.
  uid_t owner_of(const std::string& id) const {
    if (const auto* service = find(id)) return service->task.owner;
    const auto group = state_.groups.find(id);
    return group == state_.groups.end() ? 0 : group->second.owner;
  }

  /// Without the definitions of all the world before and after: who needs them reads them. It has no other
  /// field than Marathon's: the Python client fails on one that it does not know.
  static json plan(const control::Deployment& deployment) {
    const auto version = format_time(deployment.version);
    const json world = {{"id", "/"},
                        {"apps", json::array()},
                        {"groups", json::array()},
                        {"pods", json::array()},
                        {"dependencies", json::array()},
                        {"version", version}};
    return {{"id", deployment.id},
            {"version", version},
            {"original", world},
            {"target", world},
            {"steps", steps_view(deployment.steps)}};
  }

  static json current_step(const control::Deployment& deployment) {
    const auto steps = steps_view(deployment.steps);
    return deployment.step < steps.size() ? steps[deployment.step] : json{{"actions", json::array()}};
  }

  const control::State& state_;
  const std::string& ip_;
  TimePoint now_;
  std::vector<WireEvent> events_;
};

}  // namespace

std::vector<WireEvent> events_of(const control::Notice& notice, const control::State& state,
                                 const std::string& ip, TimePoint now) {
  Events events(state, ip, now);
  std::visit(events, notice);
  return events.take();
}

WireEvent attached_event(bool attached, TimePoint now) {
  return event(attached ? "event_stream_attached" : "event_stream_detached", std::nullopt,
               {{"remoteAddress", "localhost"}}, now);
}

WireEvent failed_event(uid_t caller, const std::string& id, const std::string& why, TimePoint now) {
  return event("group_change_failed", caller,
               {{"groupId", id}, {"version", format_time(now)}, {"reason", why}}, now);
}

WireEvent post_event(uid_t caller, const workload::Service& service, TimePoint now) {
  const auto owner = caller == 0 ? service.task.owner : caller;
  return event("api_post_event", owner,
               {{"clientIp", "localhost"},
                {"uri", "/v2/apps" + service.id},
                {"appDefinition", json::parse(marathon::show(service))}},
               now);
}

}  // namespace drover::api::marathon_v2

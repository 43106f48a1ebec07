#include "api/marathon/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "api/marathon/answers.h"
#include "base/json_text.h"
#include "control/agents.h"
#include "marathon/app.h"
#include "marathon/path.h"

namespace drover::api::marathon_v2 {

using control::DeploymentActionKind;
using control::ServiceRecord;
using control::TaskRecord;
using nlohmann::json;

namespace {

/// More than most take, and what is not written to costs nothing.
constexpr std::size_t kBytesOfApp = 8000;

void write_time(JsonWriter& writer, std::string_view name, const std::optional<TimePoint>& time) {
  writer.key(name);
  if (time)
    writer.value(format_time(*time));
  else
    writer.null();
}

void write_check(JsonWriter& writer, const control::CheckHealth& check, const TaskRecord& task) {
  writer.begin_object();
  writer.field("alive", check.alive);
  writer.field("consecutiveFailures", check.consecutive_failures);
  write_time(writer, "firstSuccess", check.first_success);
  writer.field("instanceId", instance_id(task));
  write_time(writer, "lastFailure", check.last_failure);
  writer.key("lastFailureCause");
  if (check.last_failure_cause.empty())
    writer.null();
  else
    writer.value(check.last_failure_cause);
  write_time(writer, "lastSuccess", check.last_success);
  writer.field("taskId", task.task.origin.task_id);  // older clients read it
  writer.end_object();
}

void write_counts(JsonWriter& writer, const Counts& counts) {
  writer.field("tasksStaged", counts.staged);
  writer.field("tasksRunning", counts.running);
  writer.field("tasksHealthy", counts.healthy);
  writer.field("tasksUnhealthy", counts.unhealthy);
}

void write_deployments(JsonWriter& writer, const std::vector<std::string>& deployments) {
  writer.key("deployments");
  writer.begin_array();
  for (const auto& id : deployments) {
    writer.begin_object();
    writer.field("id", id);
    writer.end_object();
  }
  writer.end_array();
}

json failure_view(const World& world, const ServiceRecord& record) {
  const auto& failure = *record.last_failure;
  return {{"appId", record.target.id},
          {"host", world.host()},
          {"message", failure_message(failure.message)},
          {"state", control::mesos_state(failure.state)},
          {"taskId", failure.task_id},
          {"timestamp", format_time(failure.at)},
          {"version", failure.version},
          {"slaveId", control::agent_id(world.state().journal_id)}};
}

/// Counts and ages of some of the instances.
json stats_of(const World& world, const ServiceRecord& record, const std::vector<const TaskRecord*>& tasks,
              TimePoint now) {
  Counts counts;
  std::vector<double> ages;
  for (const auto* task : tasks) {
    if (task->state == control::TaskState::kStarting) ++counts.staged;
    if (task->state != control::TaskState::kRunning) continue;
    ++counts.running;
    if (task->started_at) ages.push_back(std::chrono::duration<double>(now - *task->started_at).count());
    if (const auto alive = control::alive(world.health(*task), world.definition_of(*task, record)))
      ++(*alive ? counts.healthy : counts.unhealthy);
  }
  json stats = {{"counts",
                 {{"staged", counts.staged},
                  {"running", counts.running},
                  {"healthy", counts.healthy},
                  {"unhealthy", counts.unhealthy}}}};
  if (!ages.empty()) {
    std::ranges::sort(ages);
    double sum = 0;
    for (const auto age : ages) sum += age;
    stats["lifeTime"] = {{"averageSeconds", sum / static_cast<double>(ages.size())},
                         {"medianSeconds", ages[ages.size() / 2]}};
  }
  return {{"stats", std::move(stats)}};
}

json task_stats(const World& world, const ServiceRecord& record, TimePoint now) {
  const auto all = world.instances(record.target.id);
  const auto since = [&](TimePoint time, bool after) {
    std::vector<const TaskRecord*> some;
    for (const auto* task : all)
      if ((task->task.origin.version >= format_time(time)) == after) some.push_back(task);
    return some;
  };
  json stats = {{"totalSummary", stats_of(world, record, all, now)}};
  const auto add = [&](const char* name, const std::vector<const TaskRecord*>& tasks) {
    if (!tasks.empty()) stats[name] = stats_of(world, record, tasks, now);
  };
  add("startedAfterLastScaling", since(record.target.last_scaling_at, true));
  add("withLatestConfig", since(record.target.last_config_change_at, true));
  add("withOutdatedConfig", since(record.target.last_config_change_at, false));
  return stats;
}

}  // namespace

namespace {

void embed_what(const std::vector<std::string>& names, std::string_view prefix, Embed& embed) {
  for (const auto& name : names) {
    if (!name.starts_with(prefix)) continue;
    const auto what = std::string_view(name).substr(prefix.size());
    embed.tasks |= what == "tasks" || what == "failures";
    embed.last_failure |= what == "lastTaskFailure" || what == "failures";
    embed.readiness |= what == "readiness";
    embed.task_stats |= what == "taskStats";
  }
}

}  // namespace

Embed Embed::of_apps(const std::vector<std::string>& names) {
  Embed embed;
  embed_what(names, "apps.", embed);
  embed_what(names, "app.", embed);
  return embed;
}

Embed Embed::of_group(const std::vector<std::string>& names) {
  Embed embed;
  embed_what(names, "group.apps.", embed);
  return embed;
}

Embed Embed::all() {
  return {.tasks = true, .last_failure = true};
}

std::string app_text(const World& world, const ServiceRecord& record, const Embed& embed) {
  std::string text;
  JsonWriter writer(text);
  write_app(writer, world, record, embed);
  return text;
}

void write_app(JsonWriter& writer, const World& world, const ServiceRecord& record, const Embed& embed) {
  const auto& id = record.target.id;
  writer.begin_object();
  marathon::write_fields(writer, record.target);
  if (embed.counts) write_counts(writer, world.counts(record));
  if (embed.deployments) write_deployments(writer, world.deployments(id));
  if (embed.tasks) {
    writer.key("tasks");
    write_tasks(writer, world, world.instances(id));
  }
  if (embed.last_failure && record.last_failure)
    writer.field_raw("lastTaskFailure", to_text(failure_view(world, record)));
  if (embed.readiness) writer.field_raw("readinessCheckResults", to_text(readiness_view(world, id)));
  if (embed.task_stats) writer.field_raw("taskStats", to_text(task_stats(world, record, world.now())));
  writer.end_object();
}

std::string apps_text(const World& world, const std::vector<const ServiceRecord*>& records,
                      const Embed& embed, std::string_view name) {
  std::string text;
  text.reserve(records.size() * kBytesOfApp);
  JsonWriter writer(text);
  writer.begin_object();
  writer.key(name);
  writer.begin_array();
  for (const auto* record : records) write_app(writer, world, *record, embed);
  writer.end_array();
  writer.end_object();
  return text;
}

std::string failure_message(const std::string& reason) {
  const bool of_command = reason.starts_with("exited with status") || reason.starts_with("ended by signal");
  return of_command ? "Command " + reason : reason;
}

namespace {

void write_ip_addresses(JsonWriter& writer, const TaskRecord& task, const std::string& ip) {
  writer.begin_array();
  if (task.started_at) {
    writer.begin_object();
    writer.field("ipAddress", control::address_of(task, ip));
    writer.field("protocol", "IPv4");
    writer.end_object();
  }
  writer.end_array();
}

}  // namespace

json ip_addresses(const TaskRecord& task, const std::string& ip) {
  std::string text;
  JsonWriter writer(text);
  write_ip_addresses(writer, task, ip);
  return json::parse(text);
}

void write_task(JsonWriter& writer, const World& world, const TaskRecord& task) {
  const auto& record = world.service_of(task);
  writer.begin_object();
  writer.field("appId", task.task.origin.name);
  if (const auto* health = world.health(task); health != nullptr && !health->checks.empty()) {
    writer.key("healthCheckResults");
    writer.begin_array();
    for (const auto& check : health->checks)
      if (check) write_check(writer, *check, task);
    writer.end_array();
  }
  writer.field("host", control::host_of(task, world.host()));
  writer.field("id", task.task.origin.task_id);
  writer.key("ipAddresses");
  write_ip_addresses(writer, task, world.ip());
  writer.field_raw("localVolumes", "[]");
  writer.field("ports", task.ports);
  writer.field("role", "*");
  writer.field("servicePorts", world.service_ports(world.definition_of(task, record)));
  writer.field("slaveId", control::agent_of(world.state(), task));
  writer.field("stagedAt", format_time(task.submitted_at));
  if (task.started_at) writer.field("startedAt", format_time(*task.started_at));
  writer.field("state", control::mesos_state(task.state));
  writer.field("version", task.task.origin.version);
  writer.end_object();
}

void write_tasks(JsonWriter& writer, const World& world, const std::vector<const TaskRecord*>& tasks) {
  writer.begin_array();
  for (const auto* task : tasks) write_task(writer, world, *task);
  writer.end_array();
}

std::string_view action_name(DeploymentActionKind kind) {
  switch (kind) {
    case DeploymentActionKind::kStart:
      return "StartApplication";
    case DeploymentActionKind::kScale:
      return "ScaleApplication";
    case DeploymentActionKind::kRestart:
      return "RestartApplication";
    case DeploymentActionKind::kStop:
      return "StopApplication";
  }
  return "";
}

json steps_view(const std::vector<std::vector<control::DeploymentAction>>& steps) {
  json views = json::array();
  for (const auto& step : steps) {
    json actions = json::array();
    for (const auto& action : step)
      actions.push_back({{"action", action_name(action.kind)}, {"app", action.service}});
    views.push_back({{"actions", std::move(actions)}});
  }
  return views;
}

json readiness_view(const World& world, const std::string& service) {
  json results = json::array();
  const auto& record = world.state().services.at(service);
  if (!record.target.readiness) return results;
  for (const auto* task : world.instances(service)) {
    const auto* health = world.health(*task);
    if (health == nullptr) continue;
    json result = {{"name", record.target.readiness->name},
                   {"taskId", task->task.origin.task_id},
                   {"ready", health->ready}};
    if (health->answer && record.target.readiness->preserve_last_response)
      result["lastResponse"] = {{"status", health->answer->status},
                                {"contentType", health->answer->content_type},
                                {"body", health->answer->body}};
    results.push_back(std::move(result));
  }
  return results;
}

json deployment_view(const World& world, const control::Deployment& deployment) {
  json apps = json::array();
  for (const auto& [service, ignored] : deployment.before) apps.push_back(service);
  json current = json::array();
  if (deployment.step < deployment.steps.size())
    for (const auto& action : deployment.steps[deployment.step])
      current.push_back({{"action", action_name(action.kind)},
                         {"app", action.service},
                         {"readinessCheckResults", world.service(action.service) != nullptr
                                                       ? readiness_view(world, action.service)
                                                       : json::array()}});
  return {{"id", deployment.id},
          {"version", format_time(deployment.version)},
          {"affectedApps", std::move(apps)},
          {"affectedPods", json::array()},
          {"steps", steps_view(deployment.steps)},
          {"currentActions", std::move(current)},
          {"currentStep", std::min(deployment.step + 1, deployment.steps.size())},
          {"totalSteps", deployment.steps.size()}};
}

std::vector<TimePoint> group_versions(const World& world, const std::string& id) {
  std::set<TimePoint, std::greater<>> versions;
  for (const auto* record : world.services(id)) {
    versions.insert(record->target.version);
    for (const auto& service : record->versions) versions.insert(service.version);
  }
  for (const auto& [path, group] : world.state().groups)
    if (marathon::is_within(path, id)) versions.insert(group.version);
  if (versions.empty()) versions.insert(TimePoint{});
  return {versions.begin(), versions.end()};
}

namespace {

/// When something in it was defined last.
TimePoint group_version(const World& world, const std::string& id) {
  TimePoint version{};
  for (const auto* record : world.services(id)) version = std::max(version, record->target.version);
  for (const auto& [path, group] : world.state().groups)
    if (marathon::is_within(path, id)) version = std::max(version, group.version);
  return version;
}

/// The next groups below `id`: those with something in them, and those that were defined.
std::set<std::string> children_of(const World& world, const std::string& id,
                                  const std::vector<const ServiceRecord*>& within) {
  std::set<std::string> children;
  const auto add = [&](std::string path) {
    if (path == id || !marathon::is_within(path, id)) return;
    while (marathon::parent_path(path) != id) path = marathon::parent_path(path);
    children.insert(std::move(path));
  };
  for (const auto* record : within) add(marathon::parent_path(record->target.id));
  for (const auto& [path, group] : world.state().groups)
    if (world.caller().is_root() || group.owner == world.caller().user.uid) add(path);
  return children;
}

}  // namespace

std::string group_text(const World& world, const std::string& id, const GroupEmbed& embed) {
  auto within = world.services(id);
  if (embed.at)
    std::erase_if(within, [&](const auto* record) { return definition_at(*record, *embed.at) == nullptr; });
  const auto version = embed.at ? *embed.at : group_version(world, id);
  json dependencies = json::array();
  if (const auto found = world.state().groups.find(id); found != world.state().groups.end())
    dependencies = found->second.dependencies;
  auto text = fmt::format(R"({{"id":{},"dependencies":{},"pods":[],"version":"{}")", to_text(json(id)),
                          to_text(dependencies), format_time(version));
  if (embed.apps) {
    text += R"(,"apps":[)";
    const char* comma = "";
    for (const auto* record : within) {
      if (marathon::parent_path(record->target.id) != id) continue;
      text += comma + (embed.at ? marathon::show(*definition_at(*record, *embed.at))
                                : app_text(world, *record, embed.app));
      comma = ",";
    }
    text += "]";
  }
  if (embed.groups) {
    text += R"(,"groups":[)";
    const char* comma = "";
    for (const auto& child : children_of(world, id, within)) {
      text += comma + group_text(world, child, embed);
      comma = ",";
    }
    text += "]";
  }
  return text + "}";
}

}  // namespace drover::api::marathon_v2

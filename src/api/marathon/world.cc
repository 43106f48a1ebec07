#include "api/marathon/world.h"

#include <algorithm>

#include "api/marathon/parts.h"
#include "marathon/path.h"

namespace drover::api::marathon_v2 {

using control::ServiceRecord;
using control::TaskRecord;
using control::TaskState;
using workload::OriginKind;

World::World(const Services& services, const engine::Caller& caller)
    : services_(&services),
      state_(&services.daemon->state()),
      caller_(&caller),
      host_(state_->node),
      now_(services.daemon->now()) {
  for (const auto& [id, deployment] : state_->deployments)
    for (const auto& [service, ignored] : deployment.before) deployments_[service].push_back(id);
}

const ServiceRecord* World::service(const std::string& id) const {
  const auto found = state_->services.find(id);
  if (found == state_->services.end() || found->second.removed || !may_see(found->second.target))
    return nullptr;
  return &found->second;
}

bool World::is_taken(const std::string& id) const {
  const auto found = state_->services.find(id);
  return found != state_->services.end() && !found->second.removed;
}

std::vector<const ServiceRecord*> World::services(std::string_view group) const {
  std::vector<const ServiceRecord*> result;
  for (auto row = state_->services.lower_bound(std::string(group)); row != state_->services.end(); ++row) {
    if (!row->first.starts_with(group)) break;
    const auto& record = row->second;
    if (!record.removed && row->first != group && marathon::is_within(row->first, group) &&
        may_see(record.target))
      result.push_back(&record);
  }
  return result;
}

bool World::has_group(const std::string& id) const {
  return id == "/" || state_->groups.contains(id) || !services(id).empty();
}

std::vector<const TaskRecord*> World::instances(const std::string& service) const {
  std::vector<const TaskRecord*> result;
  const auto found = state_->by_origin.find({OriginKind::kService, service});
  if (found == state_->by_origin.end()) return result;
  for (const auto& id : found->second)
    if (const auto* task = state_->find(id); task != nullptr && owns_resources(task->state))
      result.push_back(task);
  std::ranges::sort(result, {}, &TaskRecord::sequence);
  return result;
}

std::vector<const TaskRecord*> World::waiting(const std::string& service) const {
  std::vector<const TaskRecord*> result;
  const auto found = state_->by_origin.find({OriginKind::kService, service});
  if (found == state_->by_origin.end()) return result;
  for (const auto& id : found->second)
    if (const auto* task = state_->find(id); task != nullptr && task->state == TaskState::kQueued)
      result.push_back(task);
  std::ranges::sort(result, {}, &TaskRecord::sequence);
  return result;
}

const TaskRecord* World::instance(const std::string& task_id) const {
  const auto app = app_of_task_id(task_id);
  if (app.empty() || service(app) == nullptr) return nullptr;
  const auto found = state_->by_origin.find({OriginKind::kService, app});
  if (found == state_->by_origin.end()) return nullptr;
  for (const auto& id : found->second)
    if (const auto* task = state_->find(id);
        task != nullptr && task->task.origin.task_id == task_id && !is_final(task->state))
      return task;
  return nullptr;
}

Counts World::counts(const std::string& service) const {
  Counts counts;
  const auto found = state_->by_origin.find({OriginKind::kService, service});
  if (found == state_->by_origin.end()) return counts;
  const auto& record = state_->services.at(service);
  const auto latest = format_time(record.target.version);
  for (const auto& id : found->second) {
    const auto* task = state_->find(id);
    if (task == nullptr) continue;
    if (task->state == TaskState::kStarting) ++counts.staged;
    if (task->state != TaskState::kRunning) continue;
    ++counts.running;
    const auto* known = health(*task);
    if (known == nullptr) continue;
    const auto& definition =
        task->task.origin.version == latest ? record.target : definition_of(*task, record);
    if (const auto alive = control::alive(known, definition)) ++(*alive ? counts.healthy : counts.unhealthy);
  }
  return counts;
}

const control::TaskHealth* World::health(const TaskRecord& task) const {
  const auto found = state_->health.find(task.task.id);
  return found == state_->health.end() ? nullptr : &found->second;
}

const workload::Service& World::definition_of(const TaskRecord& task, const ServiceRecord& record) const {
  const auto is_it = [&](const workload::Service& service) {
    return format_time(service.version) == task.task.origin.version;
  };
  if (is_it(record.target)) return record.target;
  if (!record.applied.id.empty() && is_it(record.applied)) return record.applied;
  const auto found = std::ranges::find_if(record.versions, is_it);
  return found == record.versions.end() ? record.target : *found;
}

const std::vector<int>& World::service_ports(const workload::Service& service) const {
  return services_->marathon->service_ports.of(service);
}

const std::vector<std::string>& World::deployments(const std::string& service) const {
  static const std::vector<std::string> none;
  const auto found = deployments_.find(service);
  return found == deployments_.end() ? none : found->second;
}

bool World::may_see(const control::Deployment& deployment) const {
  if (caller_->is_root() || deployment.owner == caller_->user.uid) return true;
  return std::ranges::any_of(deployment.before,
                             [&](const auto& each) { return service(each.first) != nullptr; });
}

const workload::Service* version_of(const ServiceRecord& record, const std::string& version) {
  const auto time = parse_time(version);
  if (!time) return nullptr;
  if (record.target.version == *time) return &record.target;
  const auto found = std::ranges::find(record.versions, *time, &workload::Service::version);
  return found == record.versions.end() ? nullptr : &*found;
}

const workload::Service* definition_at(const ServiceRecord& record, TimePoint time) {
  if (record.target.version <= time) return &record.target;
  const auto found =
      std::ranges::find_if(record.versions, [&](const auto& service) { return service.version <= time; });
  return found == record.versions.end() ? nullptr : &*found;
}

std::string app_of_task_id(std::string_view task_id) {
  const auto mark = task_id.find(".instance-");
  if (mark == std::string_view::npos || mark == 0 || !task_id.substr(mark).ends_with("._app.1")) return "";
  auto app = "/" + std::string(task_id.substr(0, mark));
  std::ranges::replace(app, '_', '/');
  return app;
}

std::string instance_id(const TaskRecord& task) {
  const auto& id = task.task.origin.task_id;
  const auto mark = id.rfind("._app.");
  return id.substr(0, mark);
}

std::string_view mesos_state(TaskState state) {
  switch (state) {
    case TaskState::kQueued:
      return "TASK_STAGING";
    case TaskState::kStarting:
      return "TASK_STARTING";
    case TaskState::kRunning:
      return "TASK_RUNNING";
    case TaskState::kStopping:
      return "TASK_KILLING";
    case TaskState::kFinished:
      return "TASK_FINISHED";
    case TaskState::kFailed:
      return "TASK_FAILED";
    case TaskState::kKilled:
      return "TASK_KILLED";
    case TaskState::kLost:
      return "TASK_LOST";
  }
  return "TASK_ERROR";
}

}  // namespace drover::api::marathon_v2

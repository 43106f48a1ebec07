#include "api/marathon/world.h"

#include <algorithm>

#include "api/marathon/parts.h"
#include "api/mesos/master.h"
#include "base/instant.h"
#include "marathon/path.h"

namespace drover::api::marathon_v2 {

using control::ServiceRecord;
using control::TaskRecord;
using control::TaskState;
using workload::OriginKind;

namespace {

/// Without the state.
Scene scene_without_state(const Services& services, const engine::Caller& caller) {
  Scene scene;
  scene.caller = caller;
  scene.now = services.decisions->now();
  scene.steady = services.decisions->steady();
  scene.ip = services.mesos->options().ip;
  scene.service_ports = &services.marathon->service_ports;
  return scene;
}

}  // namespace

Scene scene_of(const Services& services, const engine::Caller& caller) {
  auto scene = scene_without_state(services, caller);
  scene.state = services.decisions->snapshot();
  return scene;
}

World::World(const Services& services, const engine::Caller& caller)
    : World([&] {
        auto scene = scene_without_state(services, caller);
        scene.state = {std::shared_ptr<void>(), &services.decisions->state()};  // the daemon's own
        return scene;
      }()) {}

World::World(Scene scene, Scope scope) : scene_(std::move(scene)), scope_(scope) {
  for (const auto& [id, deployment] : state().deployments)
    for (const auto& [service, ignored] : deployment.before) deployments_[service].push_back(id);
  if (scope_ == Scope::kAll) collect_live();
}

void World::collect_live() {
  auto health = state().health.begin();  // by id, as the tasks are
  for (const auto& [id, task] : state().tasks) {
    if (task.task.origin.kind != OriginKind::kService || is_final(task.state)) continue;
    live_.push_back({task.task.origin.name, &task});
    while (health != state().health.end() && health->first < id) ++health;
    if (health != state().health.end() && health->first == id) health_.emplace_back(&task, &health->second);
  }
  std::ranges::sort(live_, [](const Live& a, const Live& b) {
    const auto order = a.service <=> b.service;
    return order == 0 ? a.task->sequence < b.task->sequence : order < 0;
  });
  std::ranges::sort(health_);
}

World::Tasks World::tasks_of(const std::string& service) const {
  Tasks tasks;
  if (scope_ == Scope::kAll) {
    const auto found = std::ranges::equal_range(live_, std::string_view(service), {}, &Live::service);
    tasks.reserve(found.size());
    for (const auto& live : found) tasks.push_back(live.task);
    return tasks;
  }
  const auto found = state().by_origin.find({OriginKind::kService, service});
  if (found == state().by_origin.end()) return tasks;
  for (const auto& id : found->second)
    if (const auto* task = state().find(id); task != nullptr && !is_final(task->state)) tasks.push_back(task);
  std::ranges::sort(tasks, {}, &TaskRecord::sequence);
  return tasks;
}

const ServiceRecord* World::service(const std::string& id) const {
  const auto found = state().services.find(id);
  if (found == state().services.end() || found->second.removed || !may_see(found->second.target))
    return nullptr;
  return &found->second;
}

bool World::is_taken(const std::string& id) const {
  const auto found = state().services.find(id);
  return found != state().services.end() && !found->second.removed;
}

std::vector<const ServiceRecord*> World::services(std::string_view group) const {
  std::vector<const ServiceRecord*> result;
  for (auto row = state().services.lower_bound(std::string(group)); row != state().services.end(); ++row) {
    if (!row->first.starts_with(group)) break;
    const auto& record = row->second;
    if (!record.removed && row->first != group && marathon::is_within(row->first, group) &&
        may_see(record.target))
      result.push_back(&record);
  }
  return result;
}

bool World::has_group(const std::string& id) const {
  if (id == "/" || !services(id).empty()) return true;
  for (auto group = state().groups.lower_bound(id);
       group != state().groups.end() && group->first.starts_with(id); ++group)
    if (marathon::is_within(group->first, id) &&
        (caller().is_root() || group->second.owner == caller().user.uid))
      return true;
  return false;
}

std::vector<const TaskRecord*> World::instances(const std::string& service) const {
  auto tasks = tasks_of(service);
  std::erase_if(tasks, [](const auto* task) { return !owns_resources(task->state); });
  return tasks;
}

std::vector<const TaskRecord*> World::waiting(const std::string& service) const {
  auto tasks = tasks_of(service);
  std::erase_if(tasks, [](const auto* task) { return task->state != TaskState::kQueued; });
  return tasks;
}

const TaskRecord* World::instance(const std::string& task_id) const {
  const auto app = app_of_task_id(task_id);
  if (app.empty() || service(app) == nullptr) return nullptr;
  const auto tasks = tasks_of(app);
  const auto found =
      std::ranges::find_if(tasks, [&](const auto* task) { return task->task.origin.task_id == task_id; });
  return found == tasks.end() ? nullptr : *found;
}

Counts World::counts(const ServiceRecord& record) const {
  Counts counts;
  for (const auto* task : tasks_of(record.target.id)) {
    if (task->state == TaskState::kStarting) ++counts.staged;
    if (task->state != TaskState::kRunning) continue;
    ++counts.running;
    const auto* known = health(*task);
    if (known == nullptr) continue;
    if (const auto alive = control::alive(known, definition_of(*task, record)))
      ++(*alive ? counts.healthy : counts.unhealthy);
  }
  return counts;
}

const control::TaskHealth* World::health(const TaskRecord& task) const {
  if (scope_ == Scope::kAll) {
    const auto found =
        std::ranges::lower_bound(health_, &task, {}, [](const auto& each) { return each.first; });
    return found == health_.end() || found->first != &task ? nullptr : found->second;
  }
  const auto found = state().health.find(task.task.id);
  return found == state().health.end() ? nullptr : &found->second;
}

const ServiceRecord& World::service_of(const TaskRecord& task) const {
  const auto& name = task.task.origin.name;
  if (last_service_ == nullptr || last_service_->target.id != name)
    last_service_ = &state().services.at(name);
  return *last_service_;
}

const workload::Service& World::definition_of(const TaskRecord& task, const ServiceRecord& record) const {
  if (last_dated_ != &record) {
    last_dated_ = &record;
    last_version_ = format_time(record.target.version);
  }
  if (task.task.origin.version == last_version_) return record.target;
  const auto is_it = [&](const workload::Service& service) {
    return format_time(service.version) == task.task.origin.version;
  };
  if (!record.applied.id.empty() && is_it(record.applied)) return record.applied;
  const auto found = std::ranges::find_if(record.versions, is_it);
  return found == record.versions.end() ? record.target : *found;
}

const std::vector<int>& World::service_ports(const workload::Service& service) const {
  if (last_definition_ != &service) {
    last_definition_ = &service;
    last_ports_ = scene_.service_ports->of(service);
  }
  return last_ports_;
}

const std::vector<std::string>& World::deployments(const std::string& service) const {
  static const std::vector<std::string> none;
  const auto found = deployments_.find(service);
  return found == deployments_.end() ? none : found->second;
}

bool World::may_see(const control::Deployment& deployment) const {
  if (caller().is_root() || deployment.owner == caller().user.uid) return true;
  return std::ranges::any_of(deployment.before,
                             [&](const auto& each) { return service(each.first) != nullptr; });
}

bool World::may_change(const control::Deployment& deployment) const {
  return std::ranges::all_of(deployment.before, [&](const auto& each) {
    const auto found = state().services.find(each.first);  // also while it is being removed
    return found == state().services.end() || may_see(found->second.target);
  });
}

const workload::Service* version_of(const ServiceRecord& record, const std::string& version) {
  const auto time = parse_instant(version);
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

std::optional<std::string> group_of(const std::string& id) {
  if (id != "*" && !id.ends_with("/*")) return std::nullopt;
  return marathon::absolute_path(id.substr(0, id.size() - 1));
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

}  // namespace drover::api::marathon_v2

#include "control/instances.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/ids.h"
#include "control/ending.h"

namespace drover::control {
namespace {

using workload::Service;

OriginName origin(const std::string& service) {
  return {workload::OriginKind::kService, service};
}

/// As Marathon's clients know it: "shop_web.instance-6fcb514b-….._app.1".
std::string instance_id(const std::string& service, const std::string& task) {
  auto name = service.substr(1);
  std::ranges::replace(name, '/', '_');
  const auto number = std::stoull(task, nullptr, 16);
  return fmt::format("{}.instance-{}._app.1", name, uuid_of(mix(number, 1), mix(number, 2)));
}

void start_instance(Draft& draft, const Service& service) {
  TaskRecord record;
  record.task = service.task;
  record.task.id = draft.unused_id();
  record.task.origin = {workload::OriginKind::kService, service.id, instance_id(service.id, record.task.id),
                        format_time(service.version)};
  record.submitted_at = draft.now();
  draft.add(std::move(record));
}

/// Those who go first when there are too many: who is not up, then by age.
void sort_by_worth(const Draft& draft, const ServiceRecord& record, std::vector<const TaskRecord*>& tasks) {
  const bool oldest_first = record.applied.oldest_first;
  std::ranges::sort(tasks, {}, [&](const auto* task) {
    return std::pair(is_up(draft, record, *task), oldest_first ? task->sequence : ~task->sequence);
  });
}

/// Ends so many of them; by id, since the records move when they change.
void end_some(Draft& draft, const ServiceRecord& record, std::vector<const TaskRecord*> tasks,
              std::size_t count, const std::string& why) {
  if (count == 0) return;
  sort_by_worth(draft, record, tasks);
  std::vector<std::string> ids;
  for (const auto* task : tasks)
    if (ids.size() < count) ids.push_back(task->task.id);
  for (const auto& id : ids) end_instance(draft, id, why);
}

struct DueChanges {
  std::size_t end_old = 0;
  std::size_t end_current = 0;
  std::size_t start = 0;
};

/// What is due now, without regard to the delay after failures.
DueChanges due_changes(const Draft& draft, const ServiceRecord& record, const Instances& instances) {
  const auto goal = static_cast<std::size_t>(record.applied.instances);
  const auto lacking = goal - std::min(goal, instances.current.size());
  const auto spare = instances.current.size() - std::min(goal, instances.current.size());
  // Who is ending has its place until it has ended.
  const auto there = instances.live() + instances.stopping.size();
  if (!instances.upgrading) return {0, spare, std::min(lacking, goal - std::min(goal, there))};
  const auto up = [&](const auto& tasks) {
    return static_cast<std::size_t>(
        std::ranges::count_if(tasks, [&](const auto* task) { return is_up(draft, record, *task); }));
  };
  const auto fewest =
      static_cast<std::size_t>(std::ceil(record.applied.minimum_health * record.applied.instances));
  auto most = static_cast<std::size_t>(
      std::floor((1 + record.applied.maximum_over_capacity) * record.applied.instances));
  // With neither more nor fewer than all, nothing could ever begin.
  if (most == fewest) ++most;
  const auto old_up = up(instances.old);
  const auto well = up(instances.current) + old_up;
  const auto old_not_up = instances.old.size() - old_up;
  const auto end_old = old_not_up + std::min(old_up, well - std::min(well, fewest));
  return {end_old, spare, std::min(lacking, most - std::min(most, there))};
}

void forget_oldest(Draft& draft, const std::string& service) {
  auto tasks = draft.tasks_of(origin(service));
  std::erase_if(tasks, [](const auto* task) { return !is_final(task->state); });
  if (tasks.size() <= kKeptInstances) return;
  std::ranges::sort(tasks, {}, [](const auto* task) { return task->finished_at; });
  std::vector<std::string> ids;
  for (std::size_t i = 0; i + kKeptInstances < tasks.size(); ++i) ids.push_back(tasks[i]->task.id);
  for (const auto& id : ids) draft.remove(id);
}

}  // namespace

Instances instances_of(const Draft& draft, const ServiceRecord& record) {
  Instances instances;
  const auto since = format_time(record.applied.last_config_change_at);
  for (const auto* task : draft.tasks_of(origin(record.target.id))) {
    if (is_final(task->state)) continue;
    const bool is_old = task->task.origin.version < since;
    instances.upgrading |= is_old;
    if (task->state == TaskState::kStopping && !task->preempted)
      instances.stopping.push_back(task);
    else
      (is_old ? instances.old : instances.current).push_back(task);
  }
  return instances;
}

const Service* definition_of(const ServiceRecord& record, const TaskRecord& task) {
  // Since then only the number of instances has changed, and more often perhaps than versions are kept.
  if (task.task.origin.version >= format_time(record.applied.last_config_change_at)) return &record.applied;
  const auto is_it = [&](const Service& service) {
    return format_time(service.version) == task.task.origin.version;
  };
  if (is_it(record.target)) return &record.target;
  const auto found = std::ranges::find_if(record.versions, is_it);
  return found == record.versions.end() ? nullptr : &*found;
}

bool is_up(const Draft& draft, const ServiceRecord& record, const TaskRecord& task) {
  if (task.state != TaskState::kRunning) return false;
  const auto* service = definition_of(record, task);
  if (service == nullptr) return true;
  const auto* health = draft.health(task.task.id);
  if (!service->health_checks.empty() && !alive(health, *service).value_or(false)) return false;
  return !service->readiness || (health != nullptr && health->ready);
}

void end_instance(Draft& draft, const std::string& task, std::string why) {
  auto& record = draft.change(task);
  record.stop_requested = true;
  record.stop_reason = std::move(why);
  stop(draft, task, false);
}

namespace {

/// Ends and starts those that are too many and too few now.
void balance(Draft& draft, const std::string& service, const ServiceRecord* record) {
  const auto before = instances_of(draft, *record);
  const auto ends = due_changes(draft, *record, before);
  end_some(draft, *record, before.old, ends.end_old, "a new version of its service takes over");
  end_some(draft, *record, before.current, ends.end_current, "its service has fewer instances now");
  if (record->not_before <= draft.steady()) {
    // Those that only waited are gone at once, and nothing more will be heard of them.
    const auto starts = due_changes(draft, *record, instances_of(draft, *record)).start;
    for (std::size_t i = 0; i < starts; ++i) start_instance(draft, record->applied);
    if (record->not_before != TimePoint{}) draft.services.change(service).not_before = {};
  }
}

/// It follows from the record alone, whatever became of the deployment that began it.
bool is_gone(const Draft& draft, const ServiceRecord& record) {
  if (!record.removed || record.applied.instances != 0) return false;
  const auto left = instances_of(draft, record);
  return left.live() == 0 && left.stopping.empty();
}

}  // namespace

void settle_instances(Draft& draft, const std::string& service) {
  const auto* record = draft.services.find(service);
  if (record == nullptr) return;
  if (!record->applied.id.empty()) balance(draft, service, record);
  forget_oldest(draft, service);
  if (!is_gone(draft, *draft.services.find(service))) return;
  draft.services.remove(service);
  draft.notify(notice::ServiceTerminated{service});
}

void note_failures(Draft& draft) {
  std::vector<TaskRecord> failed;
  for (const auto* task : draft.just_ended())
    if (task->task.origin.kind == workload::OriginKind::kService && !task->stop_requested)
      failed.push_back(*task);
  for (const auto& task : failed) {
    const auto& origin = task.task.origin;
    if (draft.services.find(origin.name) == nullptr) continue;
    auto& record = draft.services.change(origin.name);
    const auto& policy = record.applied.backoff;
    const bool settled = task.started_at && draft.steady() - *steady_start(task) >= kSettled;
    const auto grown =
        std::chrono::milliseconds(std::llround(static_cast<double>(record.backoff.count()) * policy.factor));
    // The first delay is what was asked for, even when it is longer than the longest.
    record.backoff = settled ? policy.initial : std::max(policy.initial, std::min(grown, policy.longest));
    record.not_before = draft.steady() + record.backoff;
    record.last_failure = ServiceFailure{origin.task_id, task.state,
                                         task.reason.empty() ? "it ended, with exit status 0" : task.reason,
                                         *task.finished_at, origin.version};
  }
}

void take_check(Draft& draft, const CheckResult& result) {
  const auto* task = draft.find(result.task);
  if (task == nullptr || task->state != TaskState::kRunning) return;
  const auto* record = draft.services.find(task->task.origin.name);
  const auto* service = record == nullptr ? nullptr : definition_of(*record, *task);
  if (service == nullptr) return;
  const auto* known = draft.health(result.task);
  auto health = known == nullptr ? TaskHealth{} : *known;
  health.checks.resize(service->health_checks.size());
  if (result.check < 0) {
    health.ready = health.ready || result.passed;
    health.answer = result.answer;
    return draft.set_health(result.task, std::move(health));
  }
  const auto index = static_cast<std::size_t>(result.check);
  if (index >= health.checks.size()) return;
  const auto before = alive(known, *service);
  const auto& check = service->health_checks[index];
  const auto found = after(health.checks[index], result, check, started_by_wall(draft, *task));
  if (!result.passed) draft.notify(notice::CheckFailed{result.task, service->id, result.check});
  health.checks[index] = found;
  draft.set_health(result.task, health);
  if (const auto now = alive(&health, *service); now && now != before)
    draft.notify(notice::HealthChanged{result.task, service->id, *now});
  if (!exhausted(found, check)) return;
  const auto why =
      fmt::format("its health check failed {} times in a row: {}", found.consecutive_failures, result.why);
  draft.notify(notice::UnhealthyKilled{result.task, service->id, why});
  auto& ending = draft.change(result.task);
  ending.unhealthy = why;
  stop(draft, result.task, false);
}

}  // namespace drover::control

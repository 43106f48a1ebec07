#include "api/mesos/seen_frameworks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "api/mesos/executor_tasks.h"
#include "control/frameworks.h"

namespace drover::api::mesos {
namespace {

using control::TaskRecord;
using workload::OriginKind;

/// As a master of Mesos keeps no more by default: an app that fails at once leaves very many in a week.
constexpr std::size_t kMostEndedTasks = 1000;

void drop_oldest_ended(std::vector<const TaskRecord*>& tasks) {
  std::vector<TimePoint> ends;
  for (const auto* task : tasks)
    if (control::is_final(task->state)) ends.push_back(task->finished_at.value_or(TimePoint{}));
  if (ends.size() <= kMostEndedTasks) return;
  const auto oldest = ends.begin() + static_cast<std::ptrdiff_t>(ends.size() - kMostEndedTasks);
  std::ranges::nth_element(ends, oldest);
  std::erase_if(tasks, [cut = *oldest](const auto* task) {
    return control::is_final(task->state) && task->finished_at.value_or(TimePoint{}) < cut;
  });
}

void add_amounts(const std::map<std::string, ResourceAmounts>& offered, SeenFramework& seen) {
  for (const auto* task : seen.containers)
    if (control::owns_resources(task->state)) seen.used += control::held_by(*task);
  if (const auto found = offered.find(seen.id); found != offered.end()) seen.offered = found->second;
}

/// Executors that the framework brought are no tasks; what they run is.
void separate_executors(const control::State& state, SeenFramework& seen) {
  seen.containers = seen.tasks;
  std::erase_if(seen.tasks, [&](const auto* record) {
    if (!is_executor(*record)) return false;
    seen.executors.push_back(record);
    return true;
  });
  seen.within = tasks_within(state, seen.id);
  for (const auto& record : seen.within) seen.tasks.push_back(record.get());
}

/// What stands for all the apps, or for all the schedules: it runs as long as the daemon. Without its tasks.
SeenFramework built_in(const Snapshot& snapshot, OriginKind kind) {
  const bool apps = kind == OriginKind::kService;
  SeenFramework seen;
  seen.id = apps ? snapshot.marathon_id : snapshot.chronos_id;
  seen.connected = true;
  seen.record.name = apps ? "marathon" : "chronos";
  seen.record.user = seen.record.owner_name = "root";
  seen.record.registered_at = seen.record.reregistered_at = snapshot.started_at;
  seen.record.knows_gpus = seen.record.knows_killing = true;
  seen.record.info = nlohmann::json{{"hostname", snapshot.options.hostname},
                                    {"webui_url", "http://" + snapshot.address},
                                    {"capabilities", {{{"type", "GPU_RESOURCES"}}}}}
                         .dump();
  return seen;
}

/// Of an app, or of a schedule.
bool may_see_task(const engine::Caller& caller, const TaskRecord& task) {
  if (task.state == control::TaskState::kQueued) return false;  // no offer was accepted for it yet
  return caller.is_root() || task.task.owner == caller.user.uid;
}

void add_tasks_of(const Snapshot& snapshot, OriginKind kind, SeenFramework& seen) {
  const auto& state = *snapshot.state;
  for (auto row = state.by_origin.lower_bound({kind, ""});
       row != state.by_origin.end() && row->first.first == kind; ++row)
    for (const auto& id : row->second) {
      const auto& task = state.tasks.at(id);
      if (may_see_task(snapshot.caller, task)) seen.tasks.push_back(&task);
    }
}

SeenFramework without_tasks(const Snapshot& snapshot, const std::string& id,
                            const control::FrameworkRecord& record) {
  SeenFramework seen;
  seen.id = id;
  seen.record = record;
  seen.connected = snapshot.connected.contains(id);
  return seen;
}

}  // namespace

bool may_see(const engine::Caller& caller, const control::FrameworkRecord& record) {
  return caller.is_root() || record.owner == caller.user.uid;
}

std::vector<SeenFramework> frameworks_for(const Snapshot& snapshot, bool removed) {
  const auto& state = *snapshot.state;
  std::vector<SeenFramework> frameworks;
  for (const auto& [id, record] : state.frameworks) {
    if (!may_see(snapshot.caller, record) || record.removed_at.has_value() != removed) continue;
    auto& seen = frameworks.emplace_back(without_tasks(snapshot, id, record));
    if (const auto found = state.by_origin.find({OriginKind::kFramework, id}); found != state.by_origin.end())
      for (const auto& task : found->second) seen.tasks.push_back(&state.tasks.at(task));
  }
  if (!removed)
    for (const auto kind : {OriginKind::kService, OriginKind::kSchedule})
      add_tasks_of(snapshot, kind, frameworks.emplace_back(built_in(snapshot, kind)));
  for (auto& seen : frameworks) {
    separate_executors(state, seen);
    add_amounts(snapshot.offered, seen);
    drop_oldest_ended(seen.tasks);
    drop_oldest_ended(seen.executors);
  }
  return frameworks;
}

std::optional<SeenFramework> framework_named(const Snapshot& snapshot, const std::string& id) {
  const auto& frameworks = snapshot.state->frameworks;
  const auto found = frameworks.find(id);
  if (found == frameworks.end() || !may_see(snapshot.caller, found->second)) return std::nullopt;
  return without_tasks(snapshot, id, found->second);
}

std::optional<SeenFramework> framework_of(const Snapshot& snapshot, const TaskRecord& record) {
  const auto& origin = record.task.origin;
  if (origin.kind == OriginKind::kPerson) return std::nullopt;
  if (origin.kind == OriginKind::kFramework) return framework_named(snapshot, origin.name);
  return may_see_task(snapshot.caller, record) ? std::optional(built_in(snapshot, origin.kind))
                                               : std::nullopt;
}

std::string task_name(const TaskRecord& record) {
  const auto& origin = record.task.origin;
  if (origin.kind == OriginKind::kSchedule) return "ChronosTask:" + origin.name;
  if (origin.kind != OriginKind::kService) return record.task.name;
  std::string name;
  for (std::string_view path = origin.name; !path.empty();) {
    const auto slash = path.rfind('/');
    const auto segment = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
    if (!name.empty()) name += '.';
    name += segment;
    path = path.substr(0, slash == std::string_view::npos ? 0 : slash);
  }
  return name;
}

std::string executor_of(const control::State& state, const TaskRecord& record) {
  const auto& origin = record.task.origin;
  if (origin.kind != OriginKind::kFramework) return origin.task_id;
  const auto row = state.framework_tasks.find(control::framework_task_key(origin.name, origin.task_id));
  return row == state.framework_tasks.end() ? origin.task_id : row->second.executor_id;
}

std::vector<SeenExecutor> executors_of(const Snapshot& snapshot, const SeenFramework& framework) {
  std::map<std::string, SeenExecutor> executors;
  for (const auto* record : framework.executors) {
    auto& executor = executors[record->task.origin.task_id];
    executor.id = record->task.origin.task_id;
    executor.name = record->task.name;
    executor.own = true;
    const bool alive = !control::is_final(record->state);
    if (executor.shown == nullptr || alive) executor.shown = record;
    executor.alive |= alive;
    if (control::owns_resources(record->state)) executor.used = control::held_by(*record);
  }
  for (const auto* record : framework.tasks) {
    const auto id = executor_of(*snapshot.state, *record);
    auto& executor = executors[id];
    executor.id = id;
    executor.tasks.push_back(record);
    if (executor.own) continue;
    // One that lives, if any does: the id may have been used before.
    if (!std::exchange(executor.alive, executor.alive || !control::is_final(record->state)))
      executor.shown = record;
    if (control::owns_resources(record->state)) executor.used += control::held_by(*record);
  }
  std::vector<SeenExecutor> listed;
  for (auto& [id, executor] : executors) {
    executor.of_group = !executor.own && executor.shown->task.origin.task_id != id;
    if (!executor.own && !executor.of_group) executor.name = fmt::format("Command Executor (Task: {})", id);
    listed.push_back(std::move(executor));
  }
  return listed;
}

std::string sandbox_path(const Snapshot& snapshot, const std::string& framework, const TaskRecord& record,
                         const std::string& executor) {
  // The arguments of a run of Chronos are in its id, slashes and all.
  const bool plain = executor.find('/') == std::string::npos;
  return fmt::format("/slaves/{}/frameworks/{}/executors/{}/runs/{}", snapshot.agent_id, framework,
                     plain ? executor : record.task.id, record.task.id);
}

}  // namespace drover::api::mesos

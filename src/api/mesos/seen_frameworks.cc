#include "api/mesos/seen_frameworks.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "api/mesos/executor_tasks.h"
#include "control/agents.h"
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

/// To `list`, its executors or its tasks. All of a record at once: there are thousands, and each look at all
/// of them takes its time.
void add(const TaskRecord& record, SeenFramework& seen, std::vector<const TaskRecord*>& list) {
  seen.containers.push_back(&record);
  list.push_back(&record);
  if (control::is_final(record.state)) ++seen.ended;
  if (control::owns_resources(record.state)) seen.used += control::held_by(record);
}

/// Executors that the framework brought are no tasks; what they run is.
void add_tasks_of(const control::State& state, const SharedSet<std::string>& ids, SeenFramework& seen) {
  for (const auto& id : ids) {
    const auto& record = state.tasks.at(id);
    add(record, seen, is_executor(record) ? seen.executors : seen.tasks);
  }
  seen.within = tasks_within(state, seen.id);
  for (const auto& record : seen.within) {
    seen.tasks.push_back(record.get());
    if (control::is_final(record->state)) ++seen.ended;
  }
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
      if (may_see_task(snapshot.caller, task)) add(task, seen, seen.tasks);
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
      add_tasks_of(state, found->second, seen);
  }
  if (!removed)
    for (const auto kind : {OriginKind::kService, OriginKind::kSchedule})
      add_tasks_of(snapshot, kind, frameworks.emplace_back(built_in(snapshot, kind)));
  for (auto& seen : frameworks) {
    if (const auto found = snapshot.offered.find(seen.id); found != snapshot.offered.end())
      seen.offered = found->second;
    if (seen.ended <= kMostEndedTasks) continue;
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
  name.reserve(origin.name.size());
  for (std::string_view path = origin.name; !path.empty();) {
    const auto slash = path.rfind('/');
    const auto segment = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
    if (!name.empty()) name += '.';
    name += segment;
    path = path.substr(0, slash == std::string_view::npos ? 0 : slash);
  }
  return name;
}

const std::string& executor_of(const control::State& state, const TaskRecord& record) {
  const auto& origin = record.task.origin;
  if (origin.kind != OriginKind::kFramework) return origin.task_id;
  const auto row = state.framework_tasks.find(control::framework_task_key(origin.name, origin.task_id));
  return row == state.framework_tasks.end() ? origin.task_id : row->second.executor_id;
}

std::string SeenExecutor::name() const {
  if (own) return shown->task.name;
  return of_group ? "" : fmt::format(FMT_COMPILE("Command Executor (Task: {})"), id);
}

namespace {

/// A container of the executor itself, or a task that it runs. Of each executor the containers come first.
struct Part {
  std::string_view executor;
  std::string host;  ///< on another one there may be one of its id
  std::size_t place;
  const TaskRecord* record;
  bool own;
};

void add(const Part& part, SeenExecutor& executor) {
  const auto& record = *part.record;
  const bool alive = !control::is_final(record.state);
  executor.own |= part.own;
  if (!part.own) executor.tasks.push_back(&record);
  if (executor.own && !part.own) return;
  // One that lives, if any does: the id may have been used before.
  if (part.own ? alive || executor.shown == nullptr : !executor.alive) executor.shown = &record;
  executor.alive |= alive;
  if (control::owns_resources(record.state)) executor.used += control::held_by(record);
}

}  // namespace

std::vector<SeenExecutor> executors_of(const Snapshot& snapshot, const SeenFramework& framework) {
  std::vector<Part> parts;
  parts.reserve(framework.executors.size() + framework.tasks.size());
  for (const auto* record : framework.executors)
    parts.push_back(
        {record->task.origin.task_id, control::host_of(record->task), parts.size(), record, true});
  for (const auto* record : framework.tasks)
    parts.push_back(
        {executor_of(*snapshot.state, *record), control::host_of(record->task), parts.size(), record, false});
  std::ranges::sort(parts, {},
                    [](const Part& part) { return std::tie(part.executor, part.host, part.place); });
  std::vector<SeenExecutor> executors;
  executors.reserve(parts.size());
  const Part* before = nullptr;
  for (const auto& part : parts) {
    if (before == nullptr || before->executor != part.executor || before->host != part.host)
      executors.emplace_back().id = part.executor;
    add(part, executors.back());
    before = &part;
  }
  for (auto& executor : executors)
    executor.of_group = !executor.own && executor.shown->task.origin.task_id != executor.id;
  return executors;
}

std::string sandbox_path(const Snapshot& snapshot, const std::string& framework, const TaskRecord& record,
                         std::string_view executor) {
  // The arguments of a run of Chronos are in its id, slashes and all.
  const bool plain = executor.find('/') == std::string::npos;
  return fmt::format(FMT_COMPILE("/slaves/{}/frameworks/{}/executors/{}/runs/{}"),
                     control::agent_of(*snapshot.state, record), framework,
                     plain ? executor : std::string_view(record.task.id), record.task.id);
}

}  // namespace drover::api::mesos

#include "control/frameworks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/ids.h"
#include "control/admission.h"
#include "control/controller.h"
#include "control/ending.h"
#include "control/executors.h"
#include "control/jobs.h"
#include "control/status_updates.h"
#include "control/submission.h"

namespace drover::control {
namespace {

constexpr const char* kHealthReason = "REASON_TASK_HEALTH_CHECK_STATUS_UPDATED";
constexpr const char* kCheckReason = "REASON_TASK_CHECK_STATUS_UPDATED";

using workload::OriginKind;

void update_framework(Draft& draft, const TaskRecord& record) {
  const auto& origin = record.task.origin;
  const auto* framework = living_framework(draft, origin.name);
  const auto key = framework_task_key(origin.name, origin.task_id);
  const auto* row = draft.framework_tasks.find(key);
  if (framework == nullptr || row == nullptr || row->within || row->id != record.task.id) return;
  const auto state = mesos_state(record, *framework);
  if (state == row->told || state == "TASK_STAGING") return;
  auto& task = draft.framework_tasks.change(key);
  const auto at = [&](std::optional<TimePoint> known) { return known.value_or(draft.now()); };
  // One that ended before its start was told has run all the same.
  const bool ran = record.started_at || record.exit_status;
  if (ran && task.told.empty()) add_update(draft, task, {"", "TASK_STARTING", "", "", at(record.started_at)});
  if (ran && task.told == "TASK_STARTING" && is_terminal(state))
    add_update(draft, task, {"", "TASK_RUNNING", "", "", at(record.started_at)});
  std::optional<bool> healthy;
  if (is_terminal(state) && !record.unhealthy.empty()) healthy = false;
  add_update(draft, task, {"", state, message_of(record), reason_of(record), draft.now(), healthy});
}

/// Single commands are their own executors, of which nobody hears.
void notify_ended_executors(Draft& draft) {
  std::set<std::pair<std::string, std::string>> ended;
  for (const auto* record : draft.just_ended()) {
    const auto& origin = record->task.origin;
    if (origin.kind != OriginKind::kFramework) continue;
    const auto* row = draft.framework_tasks.find(framework_task_key(origin.name, origin.task_id));
    if (row != nullptr && !row->within && row->executor_id != row->task_id)
      ended.emplace(row->framework, row->executor_id);
  }
  if (ended.empty()) return;
  draft.framework_tasks.each([&](const std::string&, const FrameworkTask& task) {
    const auto* record = draft.find(task.id);
    if (record != nullptr && !is_final(record->state)) ended.erase({task.framework, task.executor_id});
  });
  for (const auto& [framework, executor] : ended)
    draft.notify(notice::ExecutorEnded{.framework = framework, .executor = executor});
}

/// The ids of the tasks of a framework that have not ended.
std::vector<std::string> alive_of(const Draft& draft, const std::string& framework) {
  std::vector<std::string> ids;
  for (const auto* record : draft.tasks_of({OriginKind::kFramework, framework}))
    if (!is_final(record->state)) ids.push_back(record->task.id);
  return ids;
}

}  // namespace

std::string mesos_state(const TaskRecord& record, const FrameworkRecord& framework) {
  const bool knows_of_killing = framework.knows_killing && record.stop_requested;
  if (record.state == TaskState::kStopping && !knows_of_killing)
    return record.started_at ? "TASK_RUNNING" : "TASK_STARTING";
  // What the agent ends to make room is lost, as when Mesos corrects what it had oversubscribed.
  const bool lost = record.state == TaskState::kLost || (is_final(record.state) && record.preempted);
  if (lost) return framework.knows_partitions ? "TASK_GONE" : "TASK_LOST";
  if (record.state == TaskState::kFailed && !record.unhealthy.empty()) return "TASK_KILLED";
  return std::string(mesos_state(record.state));
}

Status subscribe_framework(Draft& draft, const std::string& id, FrameworkRecord record) {
  record.registered_at = record.reregistered_at = draft.now();
  if (const auto* known = draft.frameworks.find(id)) {
    if (known->removed_at) return fail(ErrorKind::kConflict, "Framework has been removed");
    record.registered_at = known->registered_at;
    record.owner = known->owner;
    record.owner_name = known->owner_name;
  } else {
    DROVER_CHECK_OK(admit(draft, record));
  }
  draft.frameworks.put(id, std::move(record));
  draft.made(id);
  return {};
}

Status disconnect_framework(Draft& draft, const std::string& id, std::chrono::milliseconds patience) {
  const auto* known = living_framework(draft, id);
  if (known == nullptr) return no_such_framework(id);
  const auto wait = std::max(known->failover_timeout, patience);
  if (wait.count() == 0) return remove_framework(draft, id);
  auto& record = draft.frameworks.change(id);
  if (!record.disconnected_at) record.disconnected_at = draft.now();
  record.remove_at = draft.steady() + wait;
  return {};
}

Status remove_framework(Draft& draft, const std::string& id) {
  if (living_framework(draft, id) == nullptr) return no_such_framework(id);
  for (const auto& task : alive_of(draft, id)) {
    if (is_final(draft.find(task)->state)) continue;  // with others of its gang
    draft.change(task).stop_requested = true;
    stop(draft, task, false);
  }
  std::vector<std::string> rows;
  draft.framework_tasks.each_below(framework_task_key(id, ""), [&](const auto& key, const auto& task) {
    if (task.framework == id) rows.push_back(key);
  });
  for (const auto& key : rows) draft.framework_tasks.remove(key);
  forget_executors(draft, id);
  auto& record = draft.frameworks.change(id);
  record.removed_at = draft.now();
  if (!record.disconnected_at) record.disconnected_at = draft.now();
  record.remove_at.reset();
  draft.notify(notice::FrameworkRemoved{id});
  return {};
}

Status launch_for_framework(Draft& draft, const std::vector<FrameworkLaunch>& launches) {
  std::vector<workload::Task> tasks;
  for (const auto& launch : launches) {
    const auto& origin = launch.task.origin;
    if (living_framework(draft, origin.name) == nullptr) return no_such_framework(origin.name);
    DROVER_CHECK_OK(is_unused(draft, origin.name, origin.task_id));
    tasks.push_back(launch.task);
  }
  if (tasks.empty()) return fail(ErrorKind::kInvalid, "Task group cannot be empty");
  const auto id = draft.unused_id();
  const auto size = static_cast<int>(tasks.size());
  for (int rank = 0; rank < size; ++rank) {
    auto& task = tasks[static_cast<std::size_t>(rank)];
    task.id = size == 1 ? id : member_id(id, rank);
    if (size > 1) task.gang = workload::GangMembership{id, rank, size, workload::Arrangement::kPack};
  }
  DROVER_CHECK_OK(submit(draft, tasks));
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto& origin = tasks[i].origin;
    const auto key = framework_task_key(origin.name, origin.task_id);
    FrameworkTask row;
    row.framework = origin.name;
    row.task_id = origin.task_id;
    row.id = tasks[i].id;
    row.name = tasks[i].name;
    row.executor_id = launches[i].executor_id;
    row.health_check = launches[i].health_check;
    row.check = launches[i].check;
    // What was not acknowledged of an earlier task of that id is told first.
    if (const auto* before = draft.framework_tasks.find(key)) row.updates = before->updates;
    draft.framework_tasks.put(key, std::move(row));
  }
  draft.made(id);
  return {};
}

Status acknowledge_update(Draft& draft, const std::string& framework, const std::string& task_id,
                          const std::string& uuid) {
  const auto key = framework_task_key(framework, task_id);
  const auto* row = draft.framework_tasks.find(key);
  if (row == nullptr || row->updates.empty() || row->updates.front().uuid != uuid) return {};
  auto& task = draft.framework_tasks.change(key);
  task.updates.erase(task.updates.begin());
  if (task.updates.empty() && is_terminal(task.told))
    draft.framework_tasks.remove(key);
  else if (!task.updates.empty())
    draft.notify(notice::StatusUpdated{framework, task_id});
  return {};
}

namespace {

/// The first update may be on its way. Of later findings that nobody has heard only the last matters.
void drop_unsent(FrameworkTask& task, std::string_view reason) {
  if (task.updates.empty()) return;
  const auto unsent = std::find_if(task.updates.begin() + 1, task.updates.end(),
                                   [&](const StatusUpdate& update) { return update.reason == reason; });
  if (unsent != task.updates.end()) task.updates.erase(unsent);
}

/// Failures in the grace period say nothing.
bool counts(const CheckHealth& health) {
  return health.alive || health.consecutive_failures > 0;
}

/// What follows from it is for the framework to say.
void take_general_check(Draft& draft, const std::string& key, const CheckResult& result) {
  const auto& row = *draft.framework_tasks.find(key);
  if (!row.check || row.check_status == result.status) return;
  std::optional<bool> healthy;
  if (const auto* known = draft.health(result.task); known != nullptr && !known->checks.empty())
    if (const auto& health = known->checks[kHealthCheck]; health && counts(*health)) healthy = health->alive;
  auto& task = draft.framework_tasks.change(key);
  task.check_status = result.status;
  drop_unsent(task, kCheckReason);
  add_update(draft, task, {"", "TASK_RUNNING", "", kCheckReason, draft.now(), healthy});
}

}  // namespace

void take_framework_check(Draft& draft, const CheckResult& result) {
  const auto* record = draft.find(result.task);
  if (record == nullptr || record->state != TaskState::kRunning) return;
  const auto& origin = record->task.origin;
  const auto key = framework_task_key(origin.name, origin.task_id);
  const auto* row = draft.framework_tasks.find(key);
  if (row == nullptr || row->id != result.task) return;
  if (result.check == kGeneralCheck) return take_general_check(draft, key, result);
  if (!row->health_check) return;
  const auto check = *row->health_check;
  const auto* known = draft.health(result.task);
  auto health = known == nullptr ? TaskHealth{} : *known;
  health.checks.resize(1);
  const auto before = health.checks[0];
  const auto found = after(before, result, check, started_by_wall(draft, *record));
  health.checks[0] = found;
  draft.set_health(result.task, std::move(health));
  if (counts(found) &&
      (!before || before->alive != found.alive || (!before->alive && found.consecutive_failures == 1))) {
    auto& task = draft.framework_tasks.change(key);
    drop_unsent(task, kHealthReason);
    add_update(draft, task,
               {"", "TASK_RUNNING", result.passed ? "" : "Health check failed: " + result.why, kHealthReason,
                draft.now(), found.alive});
  }
  if (!exhausted(found, check)) return;
  auto& ending = draft.change(result.task);
  ending.unhealthy =
      fmt::format("its health check failed {} times in a row: {}", found.consecutive_failures, result.why);
  stop(draft, result.task, false);
}

void expire_frameworks(Draft& draft) {
  std::vector<std::string> late;
  std::vector<std::string> old;
  draft.frameworks.each([&](const std::string& id, const FrameworkRecord& record) {
    if (record.remove_at && *record.remove_at <= draft.steady()) late.push_back(id);
    if (record.removed_at && *record.removed_at + kKeepEnded < draft.now()) old.push_back(id);
  });
  for (const auto& id : late) (void)remove_framework(draft, id);
  for (const auto& id : old) draft.frameworks.remove(id);
}

std::optional<TimePoint> next_framework_deadline(const State& state) {
  std::optional<TimePoint> next;
  for (const auto& [id, record] : state.frameworks)
    if (record.remove_at && (!next || *record.remove_at < *next)) next = record.remove_at;
  return next;
}

void notify_frameworks(Draft& draft) {
  for (const auto* record : draft.changed())
    if (record->task.origin.kind == OriginKind::kFramework) update_framework(draft, *record);
  notify_ended_executors(draft);
  end_own_executors(draft);
}

std::string next_framework_id(const State& state, const std::string& master) {
  int next = 0;
  for (const auto& [id, record] : state.frameworks) {
    if (!id.starts_with(master + "-")) continue;
    int number = 0;
    const auto* const digits = id.data() + master.size() + 1;
    if (std::from_chars(digits, id.data() + id.size(), number).ec == std::errc())
      next = std::max(next, number + 1);
  }
  return fmt::format("{}-{:04}", master, next);
}

}  // namespace drover::control

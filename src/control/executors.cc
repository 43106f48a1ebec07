#include "control/executors.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/units.h"
#include "control/admission.h"
#include "control/agents.h"
#include "control/ending.h"
#include "control/frameworks.h"
#include "control/status_updates.h"
#include "control/submission.h"

namespace drover::control {
namespace {

constexpr const char* kNotRegistered = "REASON_EXECUTOR_REGISTRATION_TIMEOUT";
constexpr const char* kNotBack = "REASON_EXECUTOR_REREGISTRATION_TIMEOUT";
constexpr const char* kTerminated = "REASON_EXECUTOR_TERMINATED";

/// As many updates of one task are remembered; an executor is told of each at once that it was taken.
constexpr std::size_t kHeard = 64;

/// Whether the executor runs the task, which has not ended.
bool concerns(const FrameworkTask& task, const ExecutorRecord& executor) {
  return task.within && task.id == executor.id && !is_terminal(task.told);
}

bool is_known(const ExecutorPart& part, const ExecutorUpdate& update) {
  return std::ranges::find(part.heard, update.uuid) != part.heard.end();
}

/// Keys of the executor's tasks that have not ended, by their ids.
std::vector<std::string> living_tasks(const Draft& draft, const ExecutorRecord& executor) {
  std::vector<std::string> keys;
  const auto begin = framework_task_key(executor.framework, "");
  draft.framework_tasks.each_below(begin, [&](const std::string& key, const FrameworkTask& task) {
    if (concerns(task, executor)) keys.push_back(key);
  });
  return keys;
}

/// Of the executor whose container a framework's task may be.
std::string executor_key_of(const workload::Task& container) {
  return executor_key(container.origin.name, container.origin.task_id, host_of(container));
}

/// The executor that this task of ours is the container of; null when it is none.
const ExecutorRecord* executor_of(const Draft& draft, const TaskRecord& record) {
  if (record.task.origin.kind != workload::OriginKind::kFramework) return nullptr;
  const auto* executor = draft.executors.find(executor_key_of(record.task));
  return executor != nullptr && executor->id == record.task.id ? executor : nullptr;
}

/// The bytes that are kept for an executor: of its tasks, and of what their framework has not acknowledged.
std::uint64_t kept_bytes(const Draft& draft, const ExecutorRecord& executor) {
  std::uint64_t bytes = 0;
  const auto begin = framework_task_key(executor.framework, "");
  draft.framework_tasks.each_below(begin, [&](const std::string&, const FrameworkTask& task) {
    if (!task.within || task.id != executor.id) return;
    bytes += kRecordBytes + task.within->info.size();
    for (const auto& update : task.updates) bytes += update.status.size();
  });
  return bytes;
}

Status check_room(const Draft& draft, const ExecutorRecord& executor, std::uint64_t more) {
  constexpr std::uint64_t kDefinitions = 8;  // an executor may keep so many of the largest
  const auto limit = kDefinitions * draft.limits().definition_bytes;
  const auto kept = kept_bytes(draft, executor);
  if (kept + more <= limit) return {};
  return fail(
      ErrorKind::kExhausted,
      fmt::format("The tasks of executor '{}' and what is not acknowledged of them would take {}, "
                  "and {} are allowed",
                  executor.executor_id, format_bytes(kept + more), format_bytes(limit)),
      "acknowledge updates, or launch on another executor; " + allow_more(&UserLimits::definition_bytes));
}

Status check_tasks(const Draft& draft, const ExecutorLaunch& launch) {
  if (living_framework(draft, launch.framework) == nullptr) return no_such_framework(launch.framework);
  if (launch.tasks.empty()) return fail(ErrorKind::kInvalid, "Task group cannot be empty");
  std::set<std::string> ids;
  for (const auto& task : launch.tasks) {
    DROVER_CHECK_OK(is_unused(draft, launch.framework, task.task_id));
    if (!ids.insert(task.task_id).second)
      return fail(ErrorKind::kConflict, "Task has duplicate ID: " + task.task_id);
  }
  return {};
}

ResourceAmounts amounts_of(const ExecutorLaunch& launch) {
  ResourceAmounts wanted;
  for (const auto& task : launch.tasks) wanted += task.amounts;
  return wanted;
}

/// What its container has and none of its tasks uses.
ResourceAmounts free_in(const Draft& draft, const ExecutorRecord& executor) {
  auto free = executor.given;
  for (const auto& key : living_tasks(draft, executor))
    free -= draft.framework_tasks.find(key)->within->amounts;
  return free;
}

/// Whether an executor that runs, or is about to, can have them.
Status check_living(const Draft& draft, const ExecutorRecord& executor, const ExecutorLaunch& launch) {
  const auto& record = *draft.find(executor.id);
  if (executor.timed_out || record.stop_requested || record.state == TaskState::kStopping)
    return fail(ErrorKind::kUnavailable, "Executor terminating");
  if (executor.info != launch.info)
    return fail(ErrorKind::kInvalid, fmt::format("ExecutorInfo is not compatible with existing ExecutorInfo "
                                                 "with same ExecutorID '{}'",
                                                 launch.executor_id));
  const auto wanted = amounts_of(launch);
  if (wanted.gpus > 0)
    return fail(ErrorKind::kInvalid,
                fmt::format("Executor '{}' runs already, and a container has the GPUs that it was started "
                            "with: launch the task on an executor of its own",
                            launch.executor_id));
  const auto free = free_in(draft, executor);
  if (!free.covers(wanted))
    return fail(ErrorKind::kInvalid,
                fmt::format("Executor '{}' runs already, and of what its container was started with there "
                            "is {} left, not {}: give the executor more resources of its own, or launch "
                            "the task on another",
                            launch.executor_id, to_string(free), to_string(wanted)));
  return {};
}

/// The executor's row, with its container submitted when there is none.
Result<ExecutorRecord> executor_for(Draft& draft, const ExecutorLaunch& launch) {
  const auto* known = draft.executors.find(executor_key(launch.framework, launch.executor_id, launch.host));
  const auto* container = known == nullptr ? nullptr : draft.find(known->id);
  if (container != nullptr && !is_final(container->state)) {
    DROVER_CHECK_OK(check_living(draft, *known, launch));
    return *known;
  }
  auto task = launch.container;
  task.id = draft.unused_id();
  DROVER_CHECK_OK(submit(draft, {task}));
  ExecutorRecord executor;
  executor.framework = launch.framework;
  executor.executor_id = launch.executor_id;
  executor.id = task.id;
  executor.info = launch.info;
  executor.given = launch.given;
  executor.host = launch.host;
  return executor;
}

void put_task(Draft& draft, const ExecutorRecord& executor, const ExecutorLaunch::Task& task, bool in_group) {
  const auto key = framework_task_key(executor.framework, task.task_id);
  FrameworkTask row;
  row.framework = executor.framework;
  row.task_id = task.task_id;
  row.id = executor.id;
  row.name = task.name;
  row.executor_id = executor.executor_id;
  row.within = ExecutorPart{executor.launches, in_group, task.info, task.amounts};
  // What was not acknowledged of an earlier task of that id is told first.
  if (const auto* before = draft.framework_tasks.find(key)) row.updates = before->updates;
  draft.framework_tasks.put(key, std::move(row));
}

/// The executor of an event, when it has not ended.
template <typename E>
const ExecutorRecord* named(const Draft& draft, const E& event) {
  return draft.executors.find(executor_key(event.framework, event.executor_id, event.host));
}

Failure no_such_executor(const std::string& id) {
  return fail(ErrorKind::kNotFound, fmt::format("There is no executor '{}'", id));
}

Status take_update(Draft& draft, const ExecutorRecord& executor, const ExecutorUpdate& update) {
  const auto key = framework_task_key(executor.framework, update.task_id);
  const auto* row = draft.framework_tasks.find(key);
  if (row == nullptr || !concerns(*row, executor) || is_known(*row->within, update)) return {};
  if (!is_terminal(update.state)) DROVER_CHECK_OK(check_room(draft, executor, update.status.size()));
  auto& task = draft.framework_tasks.change(key);
  auto& uuids = task.within->heard;
  uuids.push_back(update.uuid);
  if (uuids.size() > kHeard) uuids.erase(uuids.begin());
  StatusUpdate told{update.uuid, update.state, "", "", update.at};
  told.status = update.status;
  add_update(draft, task, std::move(told));
  return {};
}

/// Ends the container, where none of its tasks is left and no executor has come to be asked.
void end_if_idle(Draft& draft, const ExecutorRecord& executor) {
  if (!living_tasks(draft, executor).empty()) return;
  auto& record = draft.change(executor.id);
  if (is_final(record.state) || record.stop_requested) return;
  record.stop_requested = true;
  record.stop_reason = "stopped because none of its tasks is left";
  stop(draft, executor.id, false);
}

/// What the end of its executor makes of a task.
StatusUpdate update_of_end(const Draft& draft, const ExecutorRecord& executor, const TaskRecord& record,
                           const FrameworkRecord& framework) {
  StatusUpdate update;
  update.at = draft.now();
  update.state = framework.knows_partitions ? "TASK_GONE" : "TASK_LOST";
  update.reason = reason_of(record);
  update.message = "Executor terminated";
  if (executor.timed_out) {
    update.state = "TASK_FAILED";
    update.reason = executor.registered ? kNotBack : kNotRegistered;
    update.message = record.stop_reason;
    return update;
  }
  if (!record.reason.empty()) update.message += ": " + record.reason;
  if (update.reason.empty()) update.reason = kTerminated;
  // What the machine did to the container is a failure of the task; what the executor did leaves it unknown.
  if (update.reason.starts_with("REASON_CONTAINER_L")) update.state = "TASK_FAILED";
  return update;
}

void notify_end(Draft& draft, const ExecutorRecord& executor, const TaskRecord& record) {
  const auto* framework = living_framework(draft, executor.framework);
  if (framework == nullptr) return;
  for (const auto& key : living_tasks(draft, executor))
    add_update(draft, draft.framework_tasks.change(key), update_of_end(draft, executor, record, *framework));
  draft.notify(notice::ExecutorEnded{executor.framework, executor.executor_id, record.exit_status.value_or(0),
                                     executor.host});
}

}  // namespace

Status launch_on_executor(Draft& draft, const ExecutorLaunch& launch) {
  DROVER_CHECK_OK(check_tasks(draft, launch));
  DROVER_TRY(auto executor, executor_for(draft, launch));
  std::uint64_t bytes = 0;
  for (const auto& task : launch.tasks) bytes += kRecordBytes + task.info.size();
  DROVER_CHECK_OK(check_room(draft, executor, bytes));
  ++executor.launches;
  for (const auto& task : launch.tasks) put_task(draft, executor, task, launch.in_group);
  draft.executors.put(key_of(executor), executor);
  draft.made(executor.id);
  draft.notify(notice::ExecutorPending{launch.framework, launch.executor_id, launch.host});
  return {};
}

Status subscribe_executor(Draft& draft, const event::ExecutorSubscribed& event) {
  const auto* known = named(draft, event);
  if (known == nullptr) return no_such_executor(event.executor_id);
  auto& executor = draft.executors.change(key_of(*known));
  executor.registered = true;
  executor.due.reset();
  // For what there is no room yet: it is not acknowledged, so it comes again.
  for (const auto& update : event.updates) (void)take_update(draft, executor, update);
  return {};
}

Status update_by_executor(Draft& draft, const event::ExecutorUpdated& event) {
  const auto* executor = named(draft, event);
  if (executor == nullptr) return no_such_executor(event.executor_id);
  return take_update(draft, *executor, event.update);
}

Status disconnect_executor(Draft& draft, const event::ExecutorDisconnected& event) {
  const auto* executor = named(draft, event);
  if (executor == nullptr) return no_such_executor(event.executor_id);
  const auto* record = draft.find(executor->id);
  if (record == nullptr || !record->started_at || is_final(record->state)) return {};
  const auto& timeouts = draft.executor_timeouts();
  draft.executors.change(key_of(*executor)).due =
      draft.steady() + (executor->registered ? timeouts.recovery : timeouts.registration);
  return {};
}

Status kill_on_executor(Draft& draft, const event::ExecutorTaskKilled& event) {
  const auto key = framework_task_key(event.framework, event.task_id);
  const auto* row = draft.framework_tasks.find(key);
  if (row == nullptr || !row->within || is_terminal(row->told)) return {};
  const auto* container = draft.find(row->id);
  const auto* executor = container == nullptr ? nullptr : executor_of(draft, *container);
  if (executor == nullptr) return {};
  if (executor->registered) {
    auto& part = *draft.framework_tasks.change(key).within;
    part.kill = true;
    part.kill_grace = event.grace;
    draft.notify(notice::ExecutorPending{event.framework, executor->executor_id, executor->host});
    return {};
  }
  const auto part = *row->within;
  for (const auto& other : living_tasks(draft, *executor)) {
    const auto& task = *draft.framework_tasks.find(other);
    if (other != key && (!part.in_group || task.within->launch != part.launch)) continue;
    add_update(draft, draft.framework_tasks.change(other),
               {"", "TASK_KILLED", "Killed before its executor had registered",
                "REASON_TASK_KILLED_DURING_LAUNCH", draft.now()});
  }
  end_if_idle(draft, *executor);
  return {};
}

void executor_started(Draft& draft, const TaskRecord& record) {
  const auto* executor = executor_of(draft, record);
  if (executor == nullptr || executor->registered) return;
  draft.executors.change(key_of(*executor)).due = draft.steady() + draft.executor_timeouts().registration;
}

void expire_executors(Draft& draft) {
  std::vector<std::string> late;
  draft.executors.each([&](const std::string& key, const ExecutorRecord& executor) {
    if (executor.due && *executor.due <= draft.steady()) late.push_back(key);
  });
  for (const auto& key : late) {
    auto& executor = draft.executors.change(key);
    executor.due.reset();
    const auto* found = draft.find(executor.id);
    if (found == nullptr || !owns_resources(found->state) || found->stop_requested) continue;
    executor.timed_out = true;
    const auto& timeouts = draft.executor_timeouts();
    auto& record = draft.change(executor.id);
    record.stop_requested = true;
    record.stop_reason =
        executor.registered
            ? fmt::format("Executor did not reregister within {}", format_duration(timeouts.recovery))
            : fmt::format("Executor did not register within {}", format_duration(timeouts.registration));
    stop(draft, executor.id, false);
  }
}

std::optional<TimePoint> next_executor_deadline(const State& state) {
  std::optional<TimePoint> next;
  for (const auto& [key, executor] : state.executors)
    if (executor.due && (!next || *executor.due < *next)) next = executor.due;
  return next;
}

void forget_executors(Draft& draft, const std::string& framework) {
  std::vector<std::string> keys;
  draft.executors.each_below(executor_key(framework, ""), [&](const auto& key, const auto& executor) {
    if (executor.framework == framework) keys.push_back(key);
  });
  for (const auto& key : keys) draft.executors.remove(key);
}

void end_own_executors(Draft& draft) {
  for (const auto* record : draft.just_ended()) {
    const auto* found = executor_of(draft, *record);
    if (found == nullptr) continue;
    const auto executor = *found;
    notify_end(draft, executor, *record);
    draft.executors.remove(key_of(executor));
  }
}

const ExecutorRecord* executor_in(const State& state, const std::string& task) {
  const auto* record = state.find(task);
  if (record == nullptr || record->task.origin.kind != workload::OriginKind::kFramework) return nullptr;
  const auto found = state.executors.find(executor_key_of(record->task));
  return found != state.executors.end() && found->second.id == task ? &found->second : nullptr;
}

const ExecutorRecord* executor_named(const State& state, const std::string& framework,
                                     const std::string& executor, const std::string& agent) {
  const auto host = host_of_agent(state.journal_id, agent);
  if (const auto found = state.executors.find(executor_key(framework, executor, host));
      found != state.executors.end())
    return &found->second;
  if (!host.empty()) return nullptr;
  const auto begin = executor_key(framework, executor) + "/";
  const auto first = state.executors.lower_bound(begin);
  const bool is_it = first != state.executors.end() && first->first.starts_with(begin);
  const bool is_only =
      is_it && (std::next(first) == state.executors.end() || !std::next(first)->first.starts_with(begin));
  return is_only ? &first->second : nullptr;
}

bool is_taken(const State& state, const ExecutorRecord& executor, const ExecutorUpdate& update) {
  const auto row = state.framework_tasks.find(framework_task_key(executor.framework, update.task_id));
  return row == state.framework_tasks.end() || !concerns(row->second, executor) ||
         is_known(*row->second.within, update);
}

std::string mesos_state(const FrameworkTask& task, const TaskRecord* record,
                        const FrameworkRecord& framework) {
  if (task.within) return task.told.empty() ? "TASK_STAGING" : task.told;
  if (record != nullptr) return mesos_state(*record, framework);
  return framework.knows_partitions ? "TASK_GONE" : "TASK_LOST";
}

}  // namespace drover::control

#include "control/schedule_runs.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/schedules.h"
#include "control/submission.h"

namespace drover::control {
namespace {

using workload::OriginKind;

void remember(ScheduleRecord& record, ScheduleEntry entry) {
  record.history.push_back(std::move(entry));
  while (record.history.size() > kMostHistory) record.history.pop_front();
  std::erase_if(record.elements, [&](const auto& each) {
    const auto is_run = [&](const ScheduleRun& run) { return run.origin_id == each.first; };
    return std::ranges::none_of(record.active, is_run) &&
           std::ranges::none_of(record.history, [&](const auto& kept) { return is_run(kept.run); });
  });
}

/// "ct:<milliseconds>:<attempt>:<schedule>:<arguments>"; the time moves until nothing else is named so.
std::string origin_id_of(const ScheduleRecord& record, TimePoint due, int attempt,
                         const std::string& arguments) {
  auto ms = due.time_since_epoch().count();
  while (true) {
    auto id = fmt::format("ct:{}:{}:{}:{}", ms++, attempt, record.schedule.name, arguments);
    const auto same = [&](const ScheduleRun& run) { return run.origin_id == id; };
    if (std::ranges::none_of(record.active, same) &&
        std::ranges::none_of(record.history, [&](const auto& entry) { return same(entry.run); }))
      return id;
  }
}

void append_arguments(const workload::Schedule& schedule, const std::string& arguments,
                      std::vector<std::string>& command) {
  if (arguments.empty()) return;
  if (schedule.shell && !command.empty()) {
    command.back() += " " + arguments;
    return;
  }
  std::size_t begin = 0;
  while ((begin = arguments.find_first_not_of(' ', begin)) != arguments.npos) {
    const auto end = std::min(arguments.find(' ', begin), arguments.size());
    command.push_back(arguments.substr(begin, end - begin));
    begin = end;
  }
}

workload::Task task_of(const Draft& draft, const ScheduleRecord& record, const ScheduleRun& run) {
  auto task = record.schedule.task;
  task.id = run.task_id;
  task.origin = {OriginKind::kSchedule, record.schedule.name, run.origin_id, ""};
  append_arguments(record.schedule, run.arguments, task.command.edit());
  auto& environment = task.environment.edit();
  environment["CHRONOS_JOB_RUN_TIME"] = std::to_string(run.due.time_since_epoch().count());
  environment["CHRONOS_JOB_RUN_ATTEMPT"] = std::to_string(run.attempt);
  environment["mesos_task_id"] = run.origin_id;
  environment["HOST"] = draft.base().node;
  return task;
}

/// Whether a further attempt at a run that failed is planned; else it is counted.
bool plan_retry(Draft& draft, const std::string& name, const ScheduleRun& run, TimePoint at) {
  auto& record = draft.schedules.change(name);
  const bool healthy =
      !record.last_error || (record.last_success && *record.last_success >= *record.last_error);
  if (run.attempt < record.schedule.retries && healthy && !record.schedule.disabled) {
    record.retries.push_back(
        {draft.now() + retry_delay(run.attempt), run.attempt + 1, run.due, run.arguments});
    return true;
  }
  ++record.errors;
  ++record.errors_since_success;
  record.last_error = at;
  return false;
}

/// The run of a schedule succeeded, or may be taken for that: those that wait only for it start.
void release_children(Draft& draft, const std::string& name) {
  std::vector<std::string> ready;
  std::vector<std::string> waiting;
  draft.schedules.each([&](const std::string& child, const ScheduleRecord& record) {
    if (record.schedule.parents.contains(name)) waiting.push_back(child);
  });
  for (const auto& child : waiting) {
    auto& record = draft.schedules.change(child);
    record.succeeded.insert(name);
    if (record.succeeded != record.schedule.parents) continue;
    record.succeeded.clear();
    if (!record.schedule.disabled) ready.push_back(child);
  }
  for (const auto& child : ready) start_run(draft, child, {draft.now(), 0, draft.now(), ""});
}

RunOutcome outcome_of(TaskState state) {
  switch (state) {
    case TaskState::kFinished:
      return RunOutcome::kSucceeded;
    case TaskState::kKilled:
      return RunOutcome::kKilled;
    case TaskState::kLost:
      return RunOutcome::kLost;
    default:
      return RunOutcome::kFailed;
  }
}

void count_duration(ScheduleRecord& record, const TaskRecord& task) {
  if (!task.started_at || !task.finished_at) return;
  record.durations.push_back((*task.finished_at - *task.started_at).count());
  if (record.durations.size() > kMostDurations) record.durations.erase(record.durations.begin());
}

void run_ended(Draft& draft, const std::string& name, const ScheduleRun& run, const TaskRecord& task) {
  const auto at = task.finished_at.value_or(draft.now());
  const auto outcome = outcome_of(task.state);
  auto& record = draft.schedules.change(name);
  remember(record, {outcome, run, 1, task.started_at, at, task.reason});
  bool last_attempt = true;
  switch (outcome) {
    case RunOutcome::kSucceeded:
      count_duration(record, task);
      count_success(draft, name, at);
      break;
    case RunOutcome::kFailed:
    case RunOutcome::kLost:
      last_attempt = !plan_retry(draft, name, run, at);
      if (last_attempt && record.schedule.soft_error) release_children(draft, name);
      break;
    default:
      break;  // somebody wished it: no mistake, and no reason to try again
  }
  draft.notify(notice::ScheduleRunEnded{name, record.history.back(), last_attempt});
}

/// Only the last runs stay to be looked at.
void forget_old_runs(Draft& draft, const std::string& name) {
  auto tasks = draft.tasks_of({OriginKind::kSchedule, name});
  std::erase_if(tasks, [](const auto* task) { return !is_final(task->state); });
  if (tasks.size() <= kKeptRuns) return;
  std::vector<std::string> old;
  for (std::size_t i = 0; i + kKeptRuns < tasks.size(); ++i) {
    // What ended just now is forgotten another time: its end must be seen first.
    const auto* before = draft.base().find(tasks[i]->task.id);
    if (before != nullptr && is_final(before->state)) old.push_back(tasks[i]->task.id);
  }
  for (const auto& id : old) draft.remove(id);
}

void follow(Draft& draft, const std::string& name) {
  const auto is_over = [&](const ScheduleRun& run) {
    const auto* task = draft.find(run.task_id);
    return task == nullptr || is_final(task->state);
  };
  const auto* record = draft.schedules.find(name);
  if (record == nullptr || std::ranges::none_of(record->active, is_over)) return;
  std::vector<ScheduleRun> ended;
  std::erase_if(draft.schedules.change(name).active, [&](const auto& run) {
    if (!is_over(run)) return false;
    ended.push_back(run);
    return true;
  });
  for (const auto& run : ended)
    if (const auto* task = draft.find(run.task_id)) run_ended(draft, name, run, TaskRecord(*task));
  forget_old_runs(draft, name);
}

}  // namespace

void start_run(Draft& draft, const std::string& name, const ScheduleRetry& attempt) {
  auto& record = draft.schedules.change(name);
  if (!record.schedule.concurrent && !record.active.empty())
    return note_skipped(record, attempt.due, 1, draft.now(), "the run before was still going on");
  if (!record.schedule.concurrent) record.retries.clear();  // of an older run, which this one replaces
  ScheduleRun run{draft.unused_id(), origin_id_of(record, attempt.due, attempt.attempt, attempt.arguments),
                  attempt.attempt, attempt.due, attempt.arguments};
  if (const auto accepted = submit(draft, {task_of(draft, record, run)}); !accepted) {
    run.task_id.clear();
    remember(record, {RunOutcome::kFailed, run, 1, std::nullopt, draft.now(), to_string(accepted.error())});
    ++record.errors;
    ++record.errors_since_success;
    record.last_error = draft.now();
    draft.notify(notice::ScheduleRunEnded{name, record.history.back(), true});
    return;
  }
  record.active.push_back(std::move(run));
}

void note_skipped(ScheduleRecord& record, TimePoint due, std::int64_t count, TimePoint now,
                  std::string_view why) {
  if (!record.history.empty()) {
    auto& last = record.history.back();
    if (last.outcome == RunOutcome::kSkipped && last.message == why) {
      last.count += count;
      last.run.due = due;
      last.at = now;
      return;
    }
  }
  ScheduleEntry entry{RunOutcome::kSkipped, {}, count, std::nullopt, now, std::string(why)};
  entry.run.due = due;
  remember(record, std::move(entry));
}

void count_success(Draft& draft, const std::string& name, TimePoint at) {
  auto& record = draft.schedules.change(name);
  ++record.successes;
  record.errors_since_success = 0;
  record.last_success = at;
  release_children(draft, name);
}

void follow_runs(Draft& draft) {
  for (const auto& [kind, name] : draft.touched())
    if (kind == OriginKind::kSchedule) follow(draft, name);
}

std::chrono::milliseconds retry_delay(int failed_attempt) {
  constexpr std::chrono::seconds kFirst(5), kLongest(60);
  const int doublings = std::clamp(failed_attempt, 0, 10);
  return std::min<std::chrono::milliseconds>(kFirst * (1 << doublings), kLongest);
}

}  // namespace drover::control

#include "control/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "control/admission.h"
#include "control/ending.h"
#include "control/schedule_runs.h"
#include "control/submission.h"

namespace drover::control {
namespace {

using workload::Repetition;

/// Of one that may overlap: what came due while nobody looked starts at most so often.
constexpr std::int64_t kMostAtOnce = 60;

Failure no_such_schedule(const std::string& name) {
  return fail(ErrorKind::kNotFound, fmt::format("Job '{}' not found", name));
}

std::optional<Repetition> repetition_of(const ScheduleRecord& record) {
  if (record.schedule.repetition.empty()) return std::nullopt;
  auto repetition = Repetition::parse(record.schedule.repetition, record.schedule.time_zone, TimePoint{});
  return repetition ? std::optional(std::move(*repetition)) : std::nullopt;
}

/// The next run is the first that is neither past nor too late.
void set_next(ScheduleRecord& record, const Repetition& repetition, TimePoint now) {
  const auto from =
      std::max(now - record.schedule.epsilon, record.reckoned_until + std::chrono::milliseconds(1));
  const auto next = repetition.upcoming(from);
  record.next = next.index;
  record.due = next.at;
}

/// Whether `name` waits, over any number of parents, for `ancestor`.
bool descends_from(const Draft& draft, const std::string& name, const std::string& ancestor) {
  std::set<std::string> seen;
  std::vector<std::string> open{name};
  while (!open.empty()) {
    const auto current = open.back();
    open.pop_back();
    if (current == ancestor) return true;
    if (!seen.insert(current).second) continue;
    if (const auto* record = draft.schedules.find(current))
      open.insert(open.end(), record->schedule.parents.begin(), record->schedule.parents.end());
  }
  return false;
}

Status check(const Draft& draft, const workload::Schedule& schedule) {
  if (!workload::is_schedule_name(schedule.name))
    return fail(ErrorKind::kInvalid, "the job's name is invalid. Allowed names: '([\\w\\.-]+)'", "", "/name");
  if (schedule.parents.empty() == schedule.repetition.empty())
    return fail(ErrorKind::kInvalid, "A job has a schedule, or parents", "give one of the two", "/schedule");
  for (const auto& parent : schedule.parents) {
    if (draft.schedules.find(parent) == nullptr && parent != schedule.name) {
      auto error = no_such_schedule(parent).value();
      error.hint = "a job's parents are made before it";
      error.path = "/parents";
      return Failure(std::move(error));
    }
    if (descends_from(draft, parent, schedule.name))
      return fail(ErrorKind::kInvalid, fmt::format("Job '{}' would wait for itself", schedule.name),
                  "its parents may not wait for it", "/parents");
  }
  DROVER_CHECK_OK(admit(draft, schedule));
  return admissible(draft, {schedule.task});
}

}  // namespace

Status define_schedule(Draft& draft, workload::Schedule schedule) {
  DROVER_CHECK_OK(check(draft, schedule));
  std::optional<Repetition> repetition;
  if (!schedule.repetition.empty()) {
    DROVER_TRY(repetition, Repetition::parse(schedule.repetition, schedule.time_zone, draft.now()));
  }
  const auto name = schedule.name;
  if (draft.schedules.find(name) == nullptr) draft.schedules.put(name, {});
  auto& record = draft.schedules.change(name);
  const bool same_times = record.schedule.repetition == schedule.repetition &&
                          record.schedule.time_zone == schedule.time_zone && !schedule.repetition.empty();
  if (record.schedule.parents != schedule.parents) record.succeeded.clear();
  record.schedule = std::move(schedule);
  record.retries.clear();
  if (same_times) return {};
  record.next = 0;
  record.due.reset();
  if (repetition) set_next(record, *repetition, draft.now());
  return {};
}

namespace {

void stop_runs(Draft& draft, ScheduleRecord& record) {
  record.retries.clear();
  for (const auto& run : record.active) {
    const auto* task = draft.find(run.task_id);
    if (task == nullptr || is_final(task->state)) continue;
    draft.change(run.task_id).stop_requested = true;
    stop(draft, run.task_id, false);
  }
}

/// The child of a schedule that goes away waits for that one's parents instead, or takes over its times.
void inherit(ScheduleRecord& child, const ScheduleRecord& gone) {
  auto& parents = child.schedule.parents;
  parents.erase(gone.schedule.name);
  child.succeeded.erase(gone.schedule.name);
  parents.insert(gone.schedule.parents.begin(), gone.schedule.parents.end());
  if (!parents.empty()) return;
  child.succeeded.clear();
  child.schedule.repetition = gone.schedule.repetition;
  child.schedule.time_zone = gone.schedule.time_zone;
  child.next = gone.next;
  child.due = gone.due;
  child.reckoned_until = std::max(child.reckoned_until, gone.reckoned_until);
}

std::vector<std::string> children_of(const Draft& draft, const std::string& name) {
  std::vector<std::string> children;
  draft.schedules.each([&](const std::string& child, const ScheduleRecord& record) {
    if (record.schedule.parents.contains(name)) children.push_back(child);
  });
  return children;
}

}  // namespace

Status remove_schedule(Draft& draft, const std::string& name) {
  if (draft.schedules.find(name) == nullptr) return no_such_schedule(name);
  auto& record = draft.schedules.change(name);
  stop_runs(draft, record);
  for (const auto& child : children_of(draft, name)) inherit(draft.schedules.change(child), record);
  draft.schedules.remove(name);
  return {};
}

Status run_schedule(Draft& draft, const std::string& name, const std::string& arguments) {
  const auto* found = draft.schedules.find(name);
  if (found == nullptr) return no_such_schedule(name);
  if (found->schedule.disabled)
    return fail(ErrorKind::kConflict, fmt::format("Job '{}' is disabled", name), "enable it first");
  start_run(draft, name, {draft.now(), 0, draft.now(), arguments});
  return {};
}

Status kill_schedule(Draft& draft, const std::string& name) {
  if (draft.schedules.find(name) == nullptr) return no_such_schedule(name);
  stop_runs(draft, draft.schedules.change(name));
  return {};
}

Status mark_schedule(Draft& draft, const std::string& name) {
  if (draft.schedules.find(name) == nullptr) return no_such_schedule(name);
  draft.schedules.change(name).retries.clear();
  count_success(draft, name, draft.now());
  return {};
}

Status add_elements(Draft& draft, const std::string& name, const std::string& run, std::int64_t count) {
  const auto* found = draft.schedules.find(name);
  if (found == nullptr) return no_such_schedule(name);
  const auto is_run = [&](const ScheduleRun& each) { return each.origin_id == run; };
  if (std::ranges::none_of(found->active, is_run) &&
      std::ranges::none_of(found->history, [&](const auto& entry) { return is_run(entry.run); }))
    return fail(ErrorKind::kNotFound, fmt::format("Job '{}' has no task '{}'", name, run));
  constexpr std::int64_t kMost = 1LL << 53;
  auto& sum = draft.schedules.change(name).elements[run];
  sum = std::min(kMost, sum + std::min(count, kMost));
  return {};
}

namespace {

void fire_retries(Draft& draft, const std::string& name) {
  auto& record = draft.schedules.change(name);
  std::vector<ScheduleRetry> due;
  std::erase_if(record.retries, [&](const auto& retry) {
    if (retry.not_before > draft.now()) return false;
    due.push_back(retry);
    return true;
  });
  if (!record.schedule.disabled)
    for (const auto& retry : due) start_run(draft, name, retry);
}

/// Starts what came due, leaves out what is too late, and moves on to the next time.
void fire_due(Draft& draft, const std::string& name) {
  auto& record = draft.schedules.change(name);
  const auto now = draft.now();
  const auto repetition = repetition_of(record);
  if (!repetition) {
    record.due.reset();
    return;
  }
  const auto due =
      repetition->due({record.next, *record.due}, now - record.schedule.epsilon, now, kMostAtOnce);
  if (!record.schedule.disabled) {
    if (due.left_out > 0)
      note_skipped(record, due.last_left_out, due.left_out, now,
                   "it was too late: the daemon was not there at its time");
    for (const auto& at : due.times) start_run(draft, name, {at, 0, at, ""});
  }
  record.next = due.next.index;
  record.reckoned_until = std::max(record.reckoned_until, now);
  record.due = due.next.at;
}

}  // namespace

void fire_schedules(Draft& draft) {
  std::vector<std::string> due, to_retry;
  for (const auto& [at, name] : draft.base().schedules_due) {
    if (at > draft.now()) break;
    const auto& record = *draft.schedules.find(name);
    if (record.due && *record.due <= draft.now()) due.push_back(name);
    if (std::ranges::any_of(record.retries, [&](const auto& each) { return each.not_before <= draft.now(); }))
      to_retry.push_back(name);
  }
  for (const auto& name : due) fire_due(draft, name);
  for (const auto& name : to_retry) fire_retries(draft, name);
}

std::optional<TimePoint> next_due(const State& state) {
  const auto& due = state.schedules_due;
  return due.empty() ? std::nullopt : std::optional(due.begin()->first);
}

}  // namespace drover::control

#include "control/dependencies.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>

#include "control/ending.h"

namespace drover::control {
namespace {

using workload::Dependency;
using workload::EndedHow;

enum class Verdict { kOpen, kMet, kNever };

/// How what is awaited stands. What of it is forgotten has ended, and was judged when it did.
Verdict judge(const Draft& draft, const Dependency& dependency) {
  bool all_ended = true, any_failed = false;
  for (const auto* record : draft.tasks_under(dependency.job)) {
    all_ended = all_ended && is_final(record->state);
    any_failed = any_failed || (is_final(record->state) && record->state != TaskState::kFinished);
  }
  if (dependency.how == EndedHow::kAny) return all_ended ? Verdict::kMet : Verdict::kOpen;
  const bool wants_failure = dependency.how == EndedHow::kFailed;
  if (any_failed) return wants_failure ? Verdict::kMet : Verdict::kNever;
  if (!all_ended) return Verdict::kOpen;
  return wants_failure ? Verdict::kNever : Verdict::kMet;
}

/// "'train' (0f3a…)": by its name, and the id under which it is awaited.
std::string described(const std::vector<const TaskRecord*>& records, const std::string& id) {
  return records.empty() ? fmt::format("'{}'", id) : fmt::format("'{}' ({})", records.front()->task.name, id);
}

std::string why_never(const Draft& draft, const Dependency& dependency) {
  const auto name = described(draft.tasks_under(dependency.job), dependency.job);
  return dependency.how == EndedHow::kFailed
             ? fmt::format("{} has succeeded, and it was to start when that fails", name)
             : fmt::format("{} has not succeeded, and it was to start after that", name);
}

void tell(Draft& draft, const std::string& dependent, const std::string& job,
          std::deque<std::string>& ended) {
  const auto* waiting = draft.find(dependent);
  if (waiting == nullptr || waiting->state != TaskState::kQueued) return;
  const auto awaits = waiting->awaits;
  for (const auto& dependency : awaits) {
    if (dependency.job != job) continue;
    const auto verdict = judge(draft, dependency);
    if (verdict == Verdict::kMet) std::erase(draft.change(dependent).awaits, dependency);
    if (verdict != Verdict::kNever) continue;
    end(draft, dependent,
        {TaskState::kKilled, Cause::kDependency, "never started: " + why_never(draft, dependency)},
        draft.now());
    ended.push_back(dependent);
    return;
  }
}

}  // namespace

Status check_dependencies(const Draft& draft, TaskRecord& record) {
  for (const auto& dependency : record.task.batch.after) {
    if (draft.tasks_under(dependency.job).empty())
      return fail(ErrorKind::kNotFound, fmt::format("There is no task '{}'", dependency.job),
                  "'drover ps -a' lists your tasks", "/after");
    const auto verdict = judge(draft, dependency);
    if (verdict == Verdict::kNever)
      return fail(ErrorKind::kConflict, "It would never start: " + why_never(draft, dependency),
                  "wait for the end of it however it ends, with ':any', or for another task", "/after");
    if (verdict == Verdict::kOpen) record.awaits.push_back(dependency);
  }
  return {};
}

void settle_dependencies(Draft& draft) {
  const auto& awaited = draft.base().awaited;
  if (awaited.empty()) return;
  std::deque<std::string> ended;
  for (const auto* record : draft.just_ended()) ended.push_back(record->task.id);
  for (; !ended.empty(); ended.pop_front()) {
    const auto task = draft.find(ended.front())->task;
    for (const auto& job : std::set{task.id, job_id(task), submission_id(task)})
      for (const auto& dependent : State::ids_in(awaited, job)) tell(draft, dependent, job, ended);
  }
}

void release_due(Draft& draft) {
  for (const auto& [at, id] : draft.base().begins) {
    if (at > draft.now()) break;
    draft.change(id).not_before.reset();
  }
  for (const auto& [at, id] : draft.base().retries) {
    if (at > draft.steady()) break;
    draft.change(id).retry_at.reset();
  }
}

std::optional<std::string> why_held(const State& state, const TaskRecord& record) {
  constexpr std::string_view kEndings[] = {"succeeded", "failed", "ended"};
  if (!record.awaits.empty()) {
    const auto& dependency = record.awaits.front();
    return fmt::format("it waits until {} has {}",
                       described(state.tasks_under(dependency.job), dependency.job),
                       kEndings[static_cast<std::size_t>(dependency.how)]);
  }
  if (record.not_before) return fmt::format("it begins at {}", format_time(*record.not_before));
  if (!record.retry_at) return std::nullopt;
  const int most = record.task.batch.retries;
  const auto of = record.failures <= most ? fmt::format(" of {}", most) : "";
  return fmt::format("{}; it is tried again in a moment: retry {}{}", record.reason, record.failures, of);
}

std::optional<TimePoint> next_release(const State& state, Moment now) {
  std::optional<TimePoint> next;
  if (!state.begins.empty()) next = state.begins.begin()->first + (now.steady - now.wall);
  if (!state.retries.empty()) next = std::min(next.value_or(TimePoint::max()), state.retries.begin()->first);
  return next;
}

}  // namespace drover::control

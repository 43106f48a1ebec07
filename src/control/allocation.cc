#include "control/allocation.h"

#include <algorithm>
#include <array>

namespace drover::control {
namespace {

constexpr std::array<std::string_view, 7> kEnds = {"finished",  "failed",   "killed", "lost",
                                                   "preempted", "put_back", "resized"};

bool is_same_attempt(const TaskRecord& before, const TaskRecord& after) {
  return owns_resources(after.state) && attempt_of(before) == attempt_of(after);
}

bool has_same_share(const TaskRecord& before, const TaskRecord& after) {
  return std::ranges::equal(before.gpus, after.gpus, [](const auto& one, const auto& other) {
    return one.uuid == other.uuid && one.milli == other.milli;
  });
}

/// By the state that a task has ended with.
AllocationEnd end_of_state(TaskState state) {
  switch (state) {
    case TaskState::kFinished:
      return AllocationEnd::kFinished;
    case TaskState::kFailed:
      return AllocationEnd::kFailed;
    case TaskState::kKilled:
      return AllocationEnd::kKilled;
    case TaskState::kLost:
      return AllocationEnd::kLost;
    default:
      return AllocationEnd::kPutBack;
  }
}

/// By the attempt that ended, of all of which the record has the sum.
std::optional<double> used_since(const TaskRecord& before, const TaskRecord& after) {
  if (!after.use || !after.use->gpu_seconds_used) return std::nullopt;
  const double earlier = before.use ? before.use->gpu_seconds_used.value_or(0) : 0;
  return std::max(*after.use->gpu_seconds_used - earlier, 0.0);
}

}  // namespace

std::string_view to_string(AllocationEnd end) {
  return kEnds.at(static_cast<std::size_t>(end));
}

void keep_time(const TaskRecord* before, TaskRecord& after, Moment now) {
  if (!owns_resources(after.state)) {
    if (!is_final(after.state)) after.steady_held_since.reset();
    return;
  }
  const bool goes_on = before != nullptr && owns_resources(before->state) &&
                       is_same_attempt(*before, after) && has_same_share(*before, after);
  if (!goes_on) after.steady_held_since = now.steady;
}

TimePoint held_since(const TaskRecord& record, Moment now) {
  const auto since = record.steady_held_since ? record.steady_held_since : record.steady_started_at;
  return since ? now.wall - std::max(now.steady - *since, TimePoint::duration::zero()) : now.wall;
}

std::optional<Allocation> ended_allocation(const TaskRecord& before, const TaskRecord& after,
                                           const std::optional<AttemptEnd>& attempt, Moment now) {
  if (!owns_resources(before.state)) return std::nullopt;
  const bool goes_on = is_same_attempt(before, after);
  if (goes_on && has_same_share(before, after)) return std::nullopt;
  Allocation ended{.record = before, .from = held_since(before, now), .until = now.wall};
  if (goes_on) {
    ended.end = AllocationEnd::kResized;
    return ended;
  }
  ended.gpu_seconds_used = used_since(before, after);
  ended.end = attempt ? attempt->end : end_of_state(after.state);
  ended.cause = attempt ? attempt->cause : after.cause;
  const auto at = attempt ? attempt->at : after.finished_at.value_or(now.wall);
  ended.until = std::clamp(at, ended.from, now.wall);
  return ended;
}

}  // namespace drover::control

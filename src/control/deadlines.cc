#include "control/deadlines.h"

namespace drover::control {

std::optional<TimePoint> deadline_of(const TaskRecord& record) {
  const auto start = steady_start(record);
  if (!record.task.timeout || !start || record.state != TaskState::kRunning) return std::nullopt;
  return *start + *record.task.timeout;
}

std::optional<TimePoint> next_deadline(const Outcome& outcome, Moment now) {
  std::optional<TimePoint> next;
  const auto add = [&](std::optional<TimePoint> at) {
    if (at && (!next || *at < *next)) next = at;
  };
  for (const auto& record : outcome.changed) {
    add(deadline_of(record));
    if (record.state != TaskState::kQueued) continue;
    if (record.not_before) add(*record.not_before + (now.steady - now.wall));
    add(record.retry_at);
  }
  for (const auto& [id, record] : outcome.services)
    if (record && record->not_before != TimePoint{}) add(record->not_before);
  for (const auto& [id, record] : outcome.frameworks)
    if (record) add(record->remove_at);
  for (const auto& [id, record] : outcome.executors)
    if (record) add(record->due);
  for (const auto& [name, record] : outcome.schedules)
    if (const auto due = record ? next_time(*record) : std::nullopt) add(*due + (now.steady - now.wall));
  return next;
}

}  // namespace drover::control

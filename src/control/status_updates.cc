#include "control/status_updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ids.h"

namespace drover::control {

const FrameworkRecord* living_framework(const Draft& draft, const std::string& id) {
  const auto* record = draft.frameworks.find(id);
  return record != nullptr && !record->removed_at ? record : nullptr;
}

Failure no_such_framework(const std::string& id) {
  return fail(ErrorKind::kNotFound, fmt::format("There is no framework '{}'", id));
}

bool is_terminal(std::string_view mesos) {
  // The last three are said by executors alone.
  constexpr std::array<std::string_view, 8> kTerminal = {
      "TASK_FINISHED", "TASK_FAILED", "TASK_KILLED",  "TASK_LOST",
      "TASK_GONE",     "TASK_ERROR",  "TASK_DROPPED", "TASK_GONE_BY_OPERATOR"};
  return std::ranges::find(kTerminal, mesos) != kTerminal.end();
}

Status is_unused(const Draft& draft, const std::string& framework, const std::string& task_id) {
  const auto* row = draft.framework_tasks.find(framework_task_key(framework, task_id));
  if (row == nullptr) return {};
  const auto* record = draft.find(row->id);
  const bool ended = record == nullptr || is_final(record->state) || (row->within && is_terminal(row->told));
  if (ended) return {};
  return fail(ErrorKind::kConflict, "Task has duplicate ID: " + task_id);
}

std::string message_of(const TaskRecord& record) {
  if (!is_final(record.state)) return "";
  if (record.exit_status && record.reason.starts_with("exited with status"))
    return fmt::format("Command exited with status {}", *record.exit_status);
  if (record.state == TaskState::kFinished) return "Command exited with status 0";
  if (record.reason.empty()) return "";
  return (record.preempted ? "Container " : "Command ") + record.reason;
}

std::string reason_of(const TaskRecord& record) {
  if (is_final(record.state) && record.preempted) return "REASON_CONTAINER_PREEMPTED";
  if (record.state == TaskState::kLost) return "REASON_EXECUTOR_TERMINATED";
  if (record.state != TaskState::kFailed || !record.unhealthy.empty()) return "";
  if (record.timed_out) return "REASON_MAX_COMPLETION_TIME_REACHED";
  if (record.reason.starts_with("killed because it used more")) return "REASON_CONTAINER_LIMITATION_MEMORY";
  if (!record.overdrawn.empty()) return "REASON_CONTAINER_LIMITATION_DISK";
  if (!record.overran.empty()) return "REASON_CONTAINER_LIMITATION";
  if (!record.started_at) return "REASON_CONTAINER_LAUNCH_FAILED";
  return "";  // it failed by itself: a reason would blame the agent
}

void add_update(Draft& draft, FrameworkTask& task, StatusUpdate update) {
  const auto number = static_cast<std::uint64_t>(++task.update_count);
  if (update.uuid.empty()) {
    std::uint64_t name = 0;
    for (const char c : task.within ? task.id + task.task_id : task.id)
      name = mix(name, static_cast<unsigned char>(c));
    const auto at = static_cast<std::uint64_t>(update.at.time_since_epoch().count());
    update.uuid = uuid_of(mix(name, number), mix(at, name));
  }
  update.check_status = task.check_status;
  task.told = update.state;
  task.updates.push_back(std::move(update));
  draft.notify(notice::StatusUpdated{task.framework, task.task_id});
}

}  // namespace drover::control

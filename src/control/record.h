#pragma once

// A task's life, as the journal keeps it and as the API shows it. Values only; no I/O.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "workload/task.h"

namespace drover::control {

enum class TaskState {
  kQueued,    ///< accepted, waits for its resources
  kStarting,  ///< owns its GPUs; the container is being made
  kRunning,
  kStopping,  ///< somebody asked it to end, or its time is up
  kFinished,  ///< exit status 0
  kFailed,    ///< another exit status, out of memory, timed out, or it could not be started
  kKilled,    ///< stopped on request
  kLost,      ///< it was running and nobody can say how it ended
};
std::string_view to_string(TaskState state);
Result<TaskState> parse_task_state(std::string_view text);
constexpr bool is_final(TaskState state) {
  return state >= TaskState::kFinished;
}
/// Whether a task in this state owns the GPUs in its record (decision 2: ownership is derived, never kept
/// apart).
constexpr bool owns_resources(TaskState state) {
  return state == TaskState::kStarting || state == TaskState::kRunning || state == TaskState::kStopping;
}

struct TaskRecord {
  workload::Task task;
  std::uint64_t sequence = 0;  ///< order of acceptance
  TaskState state = TaskState::kQueued;
  std::vector<std::string> gpus;  ///< UUIDs; kept after the end as history
  std::string reason;             ///< why it waits, failed or was killed, in words; may be empty
  std::optional<int> exit_status;
  bool stop_requested = false;
  bool timed_out = false;
  TimePoint submitted_at{};
  std::optional<TimePoint> started_at;
  std::optional<TimePoint> finished_at;

  bool operator==(const TaskRecord&) const = default;
};

/// decode_record(encode(record)) == record.
nlohmann::json encode(const TaskRecord& record);
Result<TaskRecord> decode_record(const nlohmann::json& value);

}  // namespace drover::control

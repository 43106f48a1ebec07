#pragma once

// status.json: what the shim knows of its task, for the daemon that may come and go. Space for the ending is
// set aside before the task starts, so a disk that the task filled cannot swallow its exit status. Written by
// the shim alone; readers see the old or the new one, whole.

#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"
#include "container/containerizer.h"

namespace drover::container {

struct TaskStatus {
  std::optional<Running> running;  ///< absent when it never came so far
  std::optional<Ending> ending;    ///< absent while it runs
};

std::string encode(const TaskStatus& status);
Result<TaskStatus> decode_status(std::string_view text);

/// Absent: nullopt.
Result<std::optional<TaskStatus>> read_status(const Directory& task);

class StatusFile {
 public:
  /// Reserves the space. `task` must outlive it.
  static Result<StatusFile> reserve(const Directory& task);

  /// Atomic, not durable: after a crash of the machine nothing runs anyway.
  Status write_running(const Running& running);
  /// Atomic and durable. Once only.
  Status write_ending(const Ending& ending);

 private:
  StatusFile(const Directory& task, UniqueFd reserved) : task_(&task), reserved_(std::move(reserved)) {}

  const Directory* task_;
  UniqueFd reserved_;
  std::optional<Running> running_;
};

}  // namespace drover::container

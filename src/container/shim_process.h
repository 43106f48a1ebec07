#pragma once

// The daemon's side of a shim's birth. Thread safe.

#include <chrono>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace drover::container {

struct SpawnedShim {
  UniqueFd process;    ///< pidfd
  UniqueFd readiness;  ///< its readiness pipe
};

/// Starts `executable shim task_folder` in a session of its own, with nothing of ours but the pipe.
Result<SpawnedShim> spawn_shim(const std::string& executable, const std::string& task_folder);

enum class Readiness {
  kStarted,
  kTaken,  ///< the task was started before
};

/// Waits for what the shim says first. The Error is the shim's reason for not starting the task, kTimeout
/// when it says nothing in time, or kInternal when it died without a word.
Result<Readiness> await_readiness(const SpawnedShim& shim, std::chrono::milliseconds timeout);

/// Pure: the meaning of what came through the pipe.
Result<Readiness> parse_readiness(std::string_view text);

}  // namespace drover::container

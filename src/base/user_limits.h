#pragma once

// What one user may take up of the daemon, so that nobody can stop the others, and what all may together, so
// that the daemon bears it. One table has them all: what each is called, what it means and what it is unless
// the administrator says otherwise (`drover serve --limit NAME=VALUE`, docs/limits.md). Root is exempt from
// what is counted by user, and not from what is counted in all. Values; pure.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace drover {

struct UserLimits {
  std::uint64_t waiting_tasks = 10'000;
  std::uint64_t definition_bytes = 512 << 10;  ///< of one task, a root user's too
  /// Of the definitions of tasks that have not ended; of services, for each instance; and of jobs.
  std::uint64_t stored_bytes = 64 << 20;
  std::uint64_t frameworks = 100;
  std::uint64_t slow_launches = 4;        ///< at once: fetches, and images that are pulled for a task
  std::uint64_t pulls = 4;                ///< at once: images that are pulled or loaded by themselves
  std::uint64_t command_checks = 4;       ///< at once: health checks that run a command
  std::uint64_t answer_bytes = 16 << 20;  ///< on their way at once, and a second
  std::uint64_t sandbox_bytes = 0;        ///< on the disk; 0: half of that disk
  std::uint64_t processes = 4096;         ///< of one task that does not say, a root user's too

  // Of all users together.
  std::uint64_t all_tasks = 50'000;  ///< that wait or run; of services again so many instances
  std::uint64_t all_ended_tasks = 100'000;
  std::uint64_t all_definitions = 10'000;  ///< services, groups and jobs
  std::uint64_t all_stored_bytes = 512 << 20;
  std::uint64_t all_frameworks = 1'000;
};

/// One of them, as people see it.
struct UserLimit {
  std::string_view name;
  std::uint64_t UserLimits::* value;
  bool bytes;  ///< a size; else a number
  std::string_view help;
};
std::span<const UserLimit> user_limits();

/// Takes "waiting-tasks=500" or "stored-size=1GiB". kInvalid when there is no such limit, or it is nothing.
Status set_limit(UserLimits& limits, std::string_view setting);

/// "256 KiB", "10000".
std::string show(const UserLimit& limit, const UserLimits& limits);

/// The hint of every refusal: "the administrator can allow more: drover serve --limit waiting-tasks=N".
std::string allow_more(std::uint64_t UserLimits::* value);

}  // namespace drover

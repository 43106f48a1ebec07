#pragma once

// What a task had for a while, as the journal keeps it for accounts: also of tasks that are long forgotten.
// Values.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"

namespace drover::store {

struct Allocation {
  std::uint64_t number = 0;  ///< in the order in which they ended; given when it is written
  std::int64_t owner = 0;    ///< the user id of who asked for the task
  std::string user;          ///< his name
  std::string queue;
  std::string task_id;
  int attempt = 0;                   ///< how often the task was started before
  TimePoint from{}, until{};         ///< by the clock that people see
  TimePoint steady{};                ///< its end by the clock that nobody sets: by it accounts grow old
  std::optional<TimePoint> started;  ///< when its first attempt began to run
  std::optional<std::chrono::milliseconds> waited;  ///< until then
  /// Time of whole GPUs in which its GPUs worked; none when nobody measured it.
  std::optional<std::chrono::milliseconds> used;
  std::string gpus;    ///< "UUID=1000 UUID=250": thousandths of each; "" for none
  std::string ending;  ///< "finished", "failed", "killed", "lost", "preempted", "put_back", "resized"
  std::string cause;   ///< why, for programs: "out_of_memory"; "" for none

  bool operator==(const Allocation&) const = default;
};

/// What is kept of them. Who has more than others loses his oldest first.
struct AllocationLimits {
  std::int64_t most = 250'000;
  std::chrono::milliseconds longest = std::chrono::hours(24 * 400);
};

}  // namespace drover::store

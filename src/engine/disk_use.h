#pragma once

// What the tasks of each user take up on the disk: when it is more than one may, the task that grew most
// ends. Owned by the control strand; the probes are made on the pool, in the turn of the user whose tasks
// they are of.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "control/event.h"
#include "engine/ended_sizes.h"
#include "engine/ports.h"
#include "engine/processes.h"

namespace drover::engine {

class DiskUse {
 public:
  using Probe = decltype(Ports::task_space);  ///< may be empty: then nobody asks

  /// `overdrawn` hears of tasks that are to end. All of it outlives this and what it has on the pool.
  DiskUse(const Loop& loop, const Probe& probe, const control::State& state, const Processes& processes,
          EndedSizes& ended, std::function<void(control::event::Overdrawn)> overdrawn)
      : loop_(loop),
        probe_(probe),
        state_(state),
        processes_(processes),
        ended_(ended),
        overdrawn_(std::move(overdrawn)) {}

  /// Looks at the tasks of everybody but root who has some that run, unless that was done lately or is being
  /// done.
  void inspect();

 private:
  struct Use {
    std::uint64_t bytes = 0;
    std::uint64_t while_all_was_well = 0;  ///< when its user last had no more than he may
    std::uint64_t grown() const { return bytes - std::min(bytes, while_all_was_well); }
  };
  struct OfUser {
    std::map<std::string, Use> tasks;  ///< that were running when they were looked at last
    TimePoint next{};
    bool probing = false;
  };

  void inspect(uid_t owner, std::vector<TaskProcesses> tasks);
  void found(uid_t owner, const std::map<std::string, Result<std::uint64_t>>& found, TimePoint began);
  std::uint64_t all_of(uid_t owner) const;
  /// Why the task of a user who has too much ends that grew most; none when it is not worth it.
  std::optional<control::event::Overdrawn> most_grown(uid_t owner, std::uint64_t sum);

  const Loop& loop_;
  const Probe& probe_;
  const control::State& state_;
  const Processes& processes_;
  EndedSizes& ended_;
  std::function<void(control::event::Overdrawn)> overdrawn_;
  std::map<uid_t, OfUser> users_;
};

}  // namespace drover::engine

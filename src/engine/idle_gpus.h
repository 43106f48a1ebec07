#pragma once

// Whose GPUs do nothing for longer than they may: such a task, or its whole gang, is warned when half of that
// is over, and told of when all of it is. It is looked
// only while a task runs that has a limit, on the pool; how long one was idle before a restart of the daemon
// is not known, so it begins anew. Owned by the control strand.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "control/event.h"
#include "engine/ports.h"
#include "engine/processes.h"

namespace drover::engine {

class IdleGpus {
 public:
  using Probe = decltype(Ports::busy_tasks);  ///< may be empty: then nobody is idle

  /// `happened` hears of each task that is to end, and of warnings. All of it outlives this and what it has
  /// on the pool.
  IdleGpus(const Loop& loop, const Probe& probe, const control::State& state, const Processes& processes,
           std::function<void(control::Event)> happened)
      : loop_(loop), probe_(probe), state_(state), processes_(processes), happened_(std::move(happened)) {}

  /// Looks, unless that was done lately or is being done.
  void inspect();

 private:
  /// A task, or a gang as far as it has GPUs and runs.
  struct Job {
    std::vector<std::string> tasks;
    std::chrono::milliseconds may_be_idle{};
  };
  std::map<std::string, Job> jobs() const;  ///< by its id
  void found(const std::set<std::string>& busy);
  struct Seen {
    TimePoint busy_at;  ///< when it was seen to do something, or seen first
    bool warned = false;
  };
  /// That it may end, and when.
  void warn(const Job& job, Seen& seen, TimePoint now);

  const Loop& loop_;
  const Probe& probe_;
  const control::State& state_;
  const Processes& processes_;
  std::function<void(control::Event)> happened_;
  std::map<std::string, Seen> seen_;  ///< by job
  bool probing_ = false;
  TimePoint next_{};
};

}  // namespace drover::engine

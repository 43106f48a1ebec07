#pragma once

// Tasks that do not end although they have been killed. They keep their GPUs: what hangs in the driver may
// still use them. So it is told whose they are, and what hangs. Owned by the control strand; the probes,
// which see every process of the machine, are made on the pool.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/ports.h"
#include "engine/processes.h"

namespace drover::engine {

class Lingering {
 public:
  using Probe = decltype(Ports::what_still_runs);  ///< may be empty: then nobody looks

  /// Told once of each task what still runs of it.
  using Tell = std::function<void(const std::string& id, const std::string& words)>;

  /// All of it outlives this and what it has on the pool.
  Lingering(const Loop& loop, const Probe& probe, const control::State& state, const Processes& processes,
            Tell tell)
      : loop_(loop), probe_(probe), state_(state), processes_(processes), tell_(std::move(tell)) {}

  /// The task came into this state: whether it is to end from now on, or has, or begins anew.
  void moved(const control::TaskRecord& record);
  /// Looks at those that should have ended, unless that was done lately or is being done.
  void inspect();
  /// What still runs of tasks that should have ended, by their ids.
  std::map<std::string, std::string> words() const;

 private:
  void found(const std::vector<TaskProcesses>& asked, std::map<std::string, std::string> found);

  struct One {
    TimePoint overdue;  ///< from then on it should have ended
    std::string words;  ///< what still runs; "" until that is known
  };

  const Loop& loop_;
  const Probe& probe_;
  const control::State& state_;
  const Processes& processes_;
  const Tell tell_;
  std::map<std::string, One> ending_;  ///< tasks that are asked to end
  bool probing_ = false;
  TimePoint next_{};  ///< not before
};

}  // namespace drover::engine

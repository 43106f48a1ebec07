#pragma once

// What one connection of an executor has been told: each task once, and once that one is to end. Pure.

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/executor_record.h"
#include "control/state.h"

namespace drover::control {

/// Something to tell an executor.
struct ExecutorOrder {
  enum class Kind { kLaunch, kLaunchGroup, kKill };
  Kind kind = Kind::kLaunch;
  std::vector<const FrameworkTask*> tasks;  ///< one, unless it is a group

  bool operator==(const ExecutorOrder&) const = default;
};

class ExecutorFeed {
 public:
  /// `received`: ids of tasks that the executor has, as it says when it comes again.
  explicit ExecutorFeed(std::set<std::string> received) : received_(std::move(received)) {}

  /// What it has not been told yet, in the order of the launches. The tasks are those of the state.
  std::vector<ExecutorOrder> next(const State& state, const ExecutorRecord& executor);

 private:
  /// Whether it has to be told of the task, which it is from now on.
  bool is_new(const FrameworkTask& task);

  std::set<std::string> received_;                       ///< of what there was when it came
  std::set<std::pair<std::string, int>> launches_sent_;  ///< tasks, with their launches: ids are used again
  std::set<std::pair<std::string, int>> kills_sent_;
  bool first_ = true;
};

}  // namespace drover::control

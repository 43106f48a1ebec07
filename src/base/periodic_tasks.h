#pragma once

// What is done periodically, each on a thread of its own.

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"

namespace drover {

/// Thread safe.
class PeriodicTasks {
 public:
  PeriodicTasks();
  ~PeriodicTasks();
  PeriodicTasks(const PeriodicTasks&) = delete;
  PeriodicTasks& operator=(const PeriodicTasks&) = delete;

  /// Calls `task` at once and then again after each pause. `what` is done so is said by check(): "looking at
  /// the kubelet".
  void add(std::string what, std::chrono::milliseconds pause_between, std::function<void()> task);
  /// An error when a call has been going on for longer than that: it may never return.
  Status check(std::chrono::milliseconds patience) const;
  /// Waits for the calls that are under way.
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  struct One;

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<One>> all_;
};

}  // namespace drover

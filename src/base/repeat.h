#pragma once

// Things that are done ever again, each on a thread of its own.

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
class Repeats {
 public:
  Repeats();
  ~Repeats();
  Repeats(const Repeats&) = delete;
  Repeats& operator=(const Repeats&) = delete;

  /// Calls `look` at once and then again after each pause. `what` is done so is said by check(): "looking at
  /// the kubelet".
  void add(std::string what, std::chrono::milliseconds pause_between, std::function<void()> look);
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

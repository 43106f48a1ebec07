#pragma once

// Something that is done ever again.

#include <chrono>
#include <functional>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/pause.h"

namespace drover {

/// Calls `look` at once and then again after each pause, on a thread of its own. The destructor waits for the
/// call that is under way.
class Repeat {
 public:
  Repeat(std::chrono::milliseconds pause_between, std::function<void()> look)
      : thread_([pause_between, look = std::move(look)](const std::stop_token& stop) {
          do look();
          while (pause(pause_between, stop));
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace drover

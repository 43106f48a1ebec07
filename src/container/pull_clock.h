#pragma once

// Bounds how long a task may wait for its image (workload::Task::pull_timeout). For one thread, which pulls.

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/pause.h"
#include "base/result.h"
#include "base/units.h"

namespace drover::container {

class PullClock {
 public:
  /// What has the token is ended with `outer`, or when the time is up; none: it never is.
  PullClock(std::optional<std::chrono::milliseconds> time, const std::stop_token& outer)
      : time_(time), follow_(outer, [this] { source_.request_stop(); }) {
    if (time)
      thread_ = std::jthread([this](const std::stop_token& done) {
        if (!pause(*time_, done)) return;
        is_up_ = true;
        source_.request_stop();
      });
  }

  std::stop_token token() const { return source_.get_token(); }

  /// In words, where it ended for want of time.
  template <typename T>
  Result<T> judge(Result<T> pulled) const {
    if (pulled || !is_up_) return pulled;
    return fail(ErrorKind::kTimeout, fmt::format("Its image was not there within {}", exact_duration(*time_)),
                "give it longer with --pull-timeout, or pull it first: 'drover image pull'", "/image");
  }

 private:
  std::optional<std::chrono::milliseconds> time_;
  std::atomic<bool> is_up_ = false;
  std::stop_source source_;
  std::stop_callback<std::function<void()>> follow_;
  std::jthread thread_;
};

}  // namespace drover::container

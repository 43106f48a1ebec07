#pragma once

// Signals that end a program.

#include <signal.h>

#include <chrono>

namespace drover {

/// They are blocked before any thread starts, so that one waits for them; and as before when this goes.
class EndSignals {
 public:
  EndSignals() {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGINT);
    ::sigaddset(&set_, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~EndSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  bool came_within(std::chrono::milliseconds patience) const {
    const timespec timeout{patience.count() / 1000, patience.count() % 1000 * 1'000'000};
    return ::sigtimedwait(&set_, nullptr, &timeout) > 0;
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
};

}  // namespace drover

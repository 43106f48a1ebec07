#pragma once

// Holds threads up in tests until it is opened, once. Thread safe.

#include <condition_variable>
#include <mutex>

namespace drover::api::testing {

class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return is_open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool is_open_ = false;
};

}  // namespace drover::api::testing

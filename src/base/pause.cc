#include "base/pause.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace drover {

bool pause(std::chrono::milliseconds duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any wakes;
  wakes.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

std::chrono::milliseconds Backoff::next() {
  const auto whole = length_;
  length_ = std::min(length_ * 2, longest_);
  if (!random_) return whole;
  using Length = std::uniform_int_distribution<std::chrono::milliseconds::rep>;
  return std::chrono::milliseconds(Length((whole - whole / 2).count(), whole.count())(*random_));
}

}  // namespace drover

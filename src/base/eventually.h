#pragma once

// For tests: what other threads bring about comes a little later.

#include <chrono>
#include <thread>

namespace drover {

/// Whether it comes true within ten seconds.
template <typename Condition>
bool eventually(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace drover

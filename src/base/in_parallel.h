#pragma once

// Work that waits for others, say for many nodes, done for several things at once.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace drover {

/// Calls `work` once with each of the items, on this thread and on up to `threads - 1` others, and returns
/// when all have ended. `work` must not throw. Where the machine has fewer threads left it takes longer.
template <typename Item, typename Work>
void in_parallel(std::vector<Item>& items, std::size_t threads, const Work& work) {
  std::atomic<std::size_t> next = 0;
  const auto some = [&] {
    for (auto index = next++; index < items.size(); index = next++) work(items[index]);
  };
  std::vector<std::jthread> others;
  try {
    while (others.size() + 1 < std::min(threads, items.size())) others.emplace_back(some);
  } catch (const std::system_error&) {  // no thread is left
  }
  some();
}

}  // namespace drover

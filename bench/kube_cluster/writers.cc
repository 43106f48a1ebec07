#include "writers.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace drover::bench {

Status in_parallel(std::size_t threads, std::size_t count, const std::function<Status(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  Status outcome;
  {
    std::vector<std::jthread> all;
    for (std::size_t i = 0; i < std::min(threads, count); ++i)
      all.emplace_back([&] {
        for (auto mine = next++; mine < count; mine = next++)
          if (auto done = work(mine); !done) {
            next = count;
            const std::lock_guard lock(mutex);
            if (outcome) outcome = std::move(done);
          }
      });
  }
  return outcome;
}

}  // namespace drover::bench

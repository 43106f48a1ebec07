#pragma once

// How times are taken where a run is long: other programs on the machine do not count.

#include <algorithm>
#include <ctime>
#include <vector>

namespace drover::bench {

/// Microseconds that this thread has used of its core.
inline double now_us() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

inline double percentile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

}  // namespace drover::bench

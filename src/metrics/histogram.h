#pragma once

// How often something took how much, for one metric of the type kHistogram. Thread safe.

#include <chrono>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "metrics/exposition.h"

namespace drover::metrics {

/// For what takes milliseconds mostly and seconds sometimes. In seconds.
inline const std::vector<double> kDurations{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                            0.25,  0.5,    1,     2.5,  5,     10,   30};

class Histogram {
 public:
  /// Upper bounds of its buckets, ascending; one without a bound follows them.
  explicit Histogram(std::vector<double> bounds);

  void observe(double value);
  /// Observes how many seconds `work` takes; returns what it does.
  template <typename Work>
  auto time(Work&& work) {
    const auto began = std::chrono::steady_clock::now();
    auto result = std::forward<Work>(work)();
    observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    return result;
  }
  /// As Prometheus has them: each bucket with what is in those before it, then the sum and the count.
  std::vector<Sample> samples() const;

 private:
  const std::vector<double> bounds_;
  mutable std::mutex mutex_;  ///< of what follows
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
};

}  // namespace drover::metrics

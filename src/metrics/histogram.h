#pragma once

// How often something took how much, for one metric of the type kHistogram. Thread safe.

#include <cstdint>
#include <mutex>
#include <vector>

#include "metrics/exposition.h"

namespace drover::metrics {

class Histogram {
 public:
  /// Upper bounds of its buckets, ascending; one without a bound follows them.
  explicit Histogram(std::vector<double> bounds);

  void observe(double value);
  /// As Prometheus has them: each bucket with what is in those before it, then the sum and the count.
  std::vector<Sample> samples() const;

 private:
  const std::vector<double> bounds_;
  mutable std::mutex mutex_;  ///< of what follows
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
};

}  // namespace drover::metrics

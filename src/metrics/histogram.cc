#include "metrics/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace drover::metrics {

Histogram::Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::observe(double value) {
  const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  const std::lock_guard lock(mutex_);
  ++counts_[static_cast<std::size_t>(bucket)];
  sum_ += value;
}

std::vector<Sample> Histogram::samples() const {
  const std::lock_guard lock(mutex_);
  std::vector<Sample> samples;
  double count = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    count += static_cast<double>(counts_[i]);
    const auto bound = i < bounds_.size() ? fmt::format("{}", bounds_[i]) : "+Inf";
    samples.push_back({{{"le", bound}}, count, "_bucket"});
  }
  samples.push_back({{}, sum_, "_sum"});
  samples.push_back({{}, count, "_count"});
  return samples;
}

}  // namespace drover::metrics

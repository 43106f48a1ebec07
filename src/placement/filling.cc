#include "placement/filling.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace drover::placement {
namespace {

int steps_of(const Filler& filler) {
  constexpr int kStep = 1000 / Filling::kLevels;
  return std::max(1, (filler.milli + kStep - 1) / kStep);
}

double log_add(double a, double b) {
  const auto high = std::max(a, b);
  return high + std::log1p(std::exp(std::min(a, b) - high));
}

}  // namespace

Filling::Filling(const std::vector<Filler>& fillers, double temperature, bool for_use)
    : temperature_(temperature) {
  for (const auto& filler : fillers) {
    if (filler.gpus > 1)
      multiples_.push_back(filler);
    else
      (filler.milli < 1000 ? shares_ : singles_).push_back(filler);
  }
  std::ranges::sort(multiples_, {},
                    [](const Filler& filler) { return std::pair(filler.milli_cpus, filler.request); });
  fill_shared(for_use);
  fill_idle();
}

double Filling::weight(const Filler& filler) const {
  return std::exp(filler.value / temperature_);
}

/// Counts every multiset of shares once, with slack of any size; derivatives run beside the sums.
void Filling::fill_shared(bool for_use) {
  std::vector<double> sums(kLevels + 1, 0);
  std::vector<double> cpus(kLevels + 1, 0);
  sums[0] = 1;
  for (const auto& share : shares_) {
    const auto factor = weight(share);
    const auto steps = index(steps_of(share));
    for (auto level = steps; level < sums.size(); ++level) {
      cpus[level] += factor * (cpus[level - steps] + share.milli_cpus * sums[level - steps]);
      sums[level] += factor * sums[level - steps];
    }
    if (for_use) sums_after_.push_back(sums);
  }
  for (std::size_t level = 1; level < sums.size(); ++level) {
    sums[level] += sums[level - 1];
    cpus[level] += cpus[level - 1];
  }
  sums_ = sums;
  for (const auto& single : singles_) {
    sums.back() += weight(single);
    cpus.back() += weight(single) * single.milli_cpus;
  }
  for (std::size_t level = 0; level < sums.size(); ++level) {
    worth_.push_back(temperature_ * std::log(sums[level]));
    cpus_.push_back(cpus[level] / sums[level]);
  }
}

void Filling::fill_idle() {
  std::vector<double> logs;
  std::vector<double> cpus;
  for (int idle = 0; idle <= kMaxIdle; ++idle) {
    logs.push_back(idle * worth_.back() / temperature_);
    cpus.push_back(idle * cpus_.back());
  }
  logs_.push_back(logs);
  idle_cpus_.push_back(cpus);
  for (const auto& multiple : multiples_) {
    for (auto idle = index(multiple.gpus); idle < logs.size(); ++idle) {
      const auto rest = idle - index(multiple.gpus);
      const auto with = logs[rest] + multiple.value / temperature_;
      const auto sum = log_add(logs[idle], with);
      const auto share = std::exp(with - sum);
      cpus[idle] = (1 - share) * cpus[idle] + share * (cpus[rest] + multiple.milli_cpus);
      logs[idle] = sum;
    }
    logs_.push_back(logs);
    idle_cpus_.push_back(cpus);
  }
}

double Filling::expected_loss() const {
  double loss = 0;
  double rates = 0;
  const auto add = [&](const Filler& filler, int left) {
    const auto lost = worth(kLevels) - filler.value - worth(left);
    loss += filler.rate * std::clamp(lost, 0.0, worth(kLevels));
    rates += filler.rate;
  };
  for (const auto& share : shares_) add(share, kLevels - steps_of(share));
  for (const auto& single : singles_) add(single, 0);
  return rates > 0 ? loss / rates : 0;
}

/// The derivative of the worths by each value: the sums above, gone through backwards.
void Filling::use(std::vector<double> levels, const std::vector<std::vector<double>>& idles,
                  std::vector<double>& used) const {
  std::vector<double> pending(kMaxIdle + 1, 0);
  const auto enter = [&](std::size_t tier) {
    if (tier < idles.size())
      for (std::size_t idle = 0; idle < idles[tier].size(); ++idle) pending[idle] += idles[tier][idle];
  };
  for (auto i = multiples_.size(); i-- > 0;) {
    const auto& multiple = multiples_[i];
    enter(i + 1);
    for (auto idle = pending.size(); idle-- > index(multiple.gpus);) {
      const auto rest = idle - index(multiple.gpus);
      const auto taken =
          pending[idle] * std::exp(logs_[i + 1][rest] + multiple.value / temperature_ - logs_[i + 1][idle]);
      used[index(multiple.request)] += taken;
      pending[idle] -= taken;
      pending[rest] += taken;
    }
  }
  enter(0);
  for (std::size_t idle = 0; idle < pending.size(); ++idle)
    levels.back() += static_cast<double>(idle) * pending[idle];

  const auto total = std::exp(worth_.back() / temperature_);
  for (const auto& single : singles_) used[index(single.request)] += levels.back() / total * weight(single);
  for (std::size_t level = 0; level < kLevels; ++level) levels[level] /= sums_[level];
  levels.back() /= total;
  for (auto level = levels.size() - 1; level > 0; --level) levels[level - 1] += levels[level];
  for (auto i = shares_.size(); i-- > 0;) {
    const auto factor = weight(shares_[i]);
    const auto steps = index(steps_of(shares_[i]));
    double taken = 0;
    for (auto level = levels.size(); level-- > steps;) {
      taken += levels[level] * sums_after_[i][level - steps];
      levels[level - steps] += levels[level] * factor;
    }
    used[index(shares_[i].request)] += taken * factor;
  }
}

}  // namespace drover::placement

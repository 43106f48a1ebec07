#include "arrivals.h"

#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace drover::bench {
namespace {

using Random = std::mt19937_64;

/// std::shuffle differs between libraries; this does not.
void shuffle(std::vector<int>& values, Random& random) {
  for (auto i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
}

}  // namespace

Arrivals make_arrivals(const Trace& trace, std::uint64_t seed) {
  Random random(seed);
  Arrivals arrivals{.pods = trace.pods, .nodes = std::vector<int>(trace.nodes.size())};
  shuffle(arrivals.pods, random);
  const auto demand_of = [&](int shape) { return trace.shapes[static_cast<std::size_t>(shape)].demand(); };
  const auto mark = trace.capacity() * kOfferedPercent / 100;
  std::int64_t demand = 0;
  for (const auto pod : arrivals.pods) demand += demand_of(pod);
  const auto lists_gpus = demand > 0;
  while (demand > mark) {
    const auto victim = arrivals.pods.begin() + static_cast<std::ptrdiff_t>(random() % arrivals.pods.size());
    demand -= demand_of(*victim);
    arrivals.pods.erase(victim);
  }
  while (lists_gpus) {
    const auto clone = trace.pods[random() % trace.pods.size()];
    if (demand + demand_of(clone) > mark) break;
    demand += demand_of(clone);
    arrivals.pods.push_back(clone);
  }
  std::iota(arrivals.nodes.begin(), arrivals.nodes.end(), 0);
  shuffle(arrivals.nodes, random);
  return arrivals;
}

bool at_level(std::int64_t offered_milli, std::int64_t capacity_milli, int percent) {
  return std::lround(100.0 * static_cast<double>(offered_milli) / static_cast<double>(capacity_milli)) ==
         percent;
}

}  // namespace drover::bench

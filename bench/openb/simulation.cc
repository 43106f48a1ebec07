#include "simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

namespace drover::bench {
namespace {

std::vector<FreeNode> all_free(const Trace& trace, const Arrivals& arrivals) {
  std::vector<FreeNode> nodes;
  for (const auto i : arrivals.nodes) {
    const auto& node = trace.nodes[static_cast<std::size_t>(i)];
    FreeNode free{node.milli_cpus, node.memory_mib, node.gpus, node.model, {}};
    std::fill_n(free.left.begin(), node.gpus, kGpuMilli);
    nodes.push_back(free);
  }
  return nodes;
}

Status check(const std::vector<FreeNode>& nodes, const PodShape& shape, const std::optional<Place>& place) {
  if (!place) {
    if (std::ranges::none_of(nodes, [&](const FreeNode& node) { return fits(node, shape); })) return {};
    return fail(ErrorKind::kInternal, "the policy drops a pod that fits");
  }
  const auto& node = nodes[static_cast<std::size_t>(place->node)];
  const auto gpu_has_room =
      !shape.shares() || (place->gpu >= 0 && place->gpu < node.gpus &&
                          node.left[static_cast<std::size_t>(place->gpu)] >= shape.gpu_milli);
  if (fits(node, shape) && gpu_has_room) return {};
  return fail(ErrorKind::kInternal, "the policy places a pod where it does not fit");
}

}  // namespace

int FreeNode::idle() const {
  return static_cast<int>(std::count(left.begin(), left.begin() + gpus, kGpuMilli));
}

std::int64_t FreeNode::milli() const {
  return std::accumulate(left.begin(), left.begin() + gpus, std::int64_t{0});
}

bool fits(const FreeNode& node, const PodShape& shape) {
  if (node.milli_cpus < shape.milli_cpus || node.memory_mib < shape.memory_mib) return false;
  if (shape.gpus == 0) return true;
  if (!shape.allows(node.model)) return false;
  if (!shape.shares()) return node.idle() >= shape.gpus;
  return std::any_of(node.left.begin(), node.left.begin() + node.gpus,
                     [&](int left) { return left >= shape.gpu_milli; });
}

void take(FreeNode& node, const PodShape& shape, int gpu) {
  node.milli_cpus -= shape.milli_cpus;
  node.memory_mib -= shape.memory_mib;
  if (shape.shares()) {
    node.left[static_cast<std::size_t>(gpu)] -= shape.gpu_milli;
    return;
  }
  auto missing = shape.gpus;
  for (auto& left : node.left) {
    if (missing == 0) break;
    if (left != kGpuMilli) continue;
    left = 0;
    --missing;
  }
}

Result<Outcome> simulate(const Trace& trace, const Arrivals& arrivals, std::uint64_t seed,
                         const std::vector<int>& levels, const MakePolicy& make_policy) {
  using Clock = std::chrono::steady_clock;
  auto nodes = all_free(trace, arrivals);
  auto begin = Clock::now();
  const auto policy = make_policy(trace, arrivals, seed);
  auto spent = Clock::now() - begin;
  const auto capacity = trace.capacity();
  std::int64_t offered = 0, placed = 0;
  std::map<int, std::pair<double, int>> sums;
  for (const auto pod : arrivals.pods) {
    const auto& shape = trace.shapes[static_cast<std::size_t>(pod)];
    begin = Clock::now();
    const auto place = policy->place(nodes, pod);
    spent += Clock::now() - begin;
    DROVER_CHECK_OK(check(nodes, shape, place));
    offered += shape.demand();
    if (place) {
      take(nodes[static_cast<std::size_t>(place->node)], shape, place->gpu);
      placed += shape.demand();
    }
    for (const auto level : levels) {
      if (!at_level(offered, capacity, level)) continue;
      auto& [sum, count] = sums[level];
      sum += 100.0 * static_cast<double>(placed) / static_cast<double>(capacity);
      ++count;
    }
  }
  Outcome outcome;
  for (const auto& [level, sum] : sums) outcome.allocation[level] = sum.first / sum.second;
  outcome.microseconds_per_pod = std::chrono::duration<double, std::micro>(spent).count() /
                                 static_cast<double>(std::max<std::size_t>(arrivals.pods.size(), 1));
  return outcome;
}

}  // namespace drover::bench

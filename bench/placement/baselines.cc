#include "baselines.h"

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>

namespace drover::bench {
namespace {

constexpr int kLevels = static_cast<int>(gpu::PcieLevel::kUnknown);

bool has(Set set, std::size_t gpu) {
  return (set >> gpu & 1U) != 0;
}

struct Sums {
  std::int64_t nvlinks = 0;
  std::int64_t weakest = 0;
  std::int64_t nearness = 0;
};

Sums sums_of(const Topology& topology, Set set) {
  Sums sums;
  bool first = true;
  for (std::size_t b = 0; b < topology.links.size(); ++b)
    for (std::size_t a = 0; has(set, b) && a < b; ++a) {
      if (!has(set, a)) continue;
      const auto& link = topology.links[a][b];
      sums.nvlinks += link.nvlinks;
      sums.nearness += kLevels - static_cast<int>(link.pcie);
      sums.weakest = first ? link.nvlinks : std::min<std::int64_t>(sums.weakest, link.nvlinks);
      first = false;
    }
  return sums;
}

int numa_nodes_of(const Topology& topology, Set set) {
  std::set<int> nodes;
  for (std::size_t i = 0; i < topology.numa.size(); ++i)
    if (has(set, i) && topology.numa[i]) nodes.insert(*topology.numa[i]);
  return static_cast<int>(nodes.size());
}

/// Of two sets of one size: whether `a` comes first when their indices are compared one by one.
bool lower(Set a, Set b) {
  return a != b && has(a, static_cast<std::size_t>(std::countr_zero(a ^ b)));
}

}  // namespace

Interconnect interconnect_of(const Topology& topology, Set free, Set chosen) {
  const auto of = sums_of(topology, chosen);
  const auto left = sums_of(topology, free & ~chosen);
  return {of.nvlinks, of.weakest, of.nearness, left.nvlinks, left.nearness};
}

Set try_all(const Topology& topology, Set free, int count) {
  std::vector<Set> gpus;
  for (Set rest = free; rest != 0; rest &= rest - 1) gpus.push_back(rest & -rest);
  std::vector<bool> taken(gpus.size(), false);
  std::fill_n(taken.begin(), count, true);
  Set best = 0;
  Interconnect best_links;
  int best_nodes = 0;
  do {  // in the order of lowest indices
    Set set = 0;
    for (std::size_t i = 0; i < gpus.size(); ++i)
      if (taken[i]) set |= gpus[i];
    const auto links = interconnect_of(topology, free, set);
    const int nodes = numa_nodes_of(topology, set);
    if (best != 0 && (links < best_links || (links == best_links && nodes >= best_nodes))) continue;
    best = set;
    best_links = links;
    best_nodes = nodes;
  } while (std::prev_permutation(taken.begin(), taken.end()));
  return best;
}

BruteForce::BruteForce(const Topology& topology) : facts_(std::size_t{1} << topology.links.size()) {
  for (Set set = 0; set < facts_.size(); ++set) {
    const auto sums = sums_of(topology, set);
    facts_[set] = {sums.nvlinks, sums.weakest, sums.nearness, numa_nodes_of(topology, set)};
  }
}

std::vector<Set> BruteForce::best(Set free) const {
  const auto key = [&](Set set) {
    const auto& of = facts_[set];
    const auto& left = facts_[free & ~set];
    return std::tuple(of.nvlinks, of.weakest, of.nearness, left.nvlinks, left.nearness, -of.numa_nodes);
  };
  std::vector<Set> best(static_cast<std::size_t>(std::popcount(free)) + 1);
  for (Set set = free; set != 0; set = (set - 1) & free) {
    auto& champion = best[static_cast<std::size_t>(std::popcount(set))];
    if (champion == 0) champion = set;
    const auto order = key(set) <=> key(champion);
    if (order > 0 || (order == 0 && lower(set, champion))) champion = set;
  }
  return best;
}

Set lowest_indices(Set free, int count) {
  Set set = 0;
  for (; count > 0; --count, free &= free - 1) set |= free & -free;
  return set;
}

Set any_set(Set free, int count, std::mt19937_64& random) {
  while (std::popcount(free) > count) {
    auto drop = random() % static_cast<unsigned>(std::popcount(free));
    Set rest = free;
    for (; drop > 0; --drop) rest &= rest - 1;
    free &= ~(rest & -rest);
  }
  return free;
}

}  // namespace drover::bench

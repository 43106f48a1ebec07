#include "placement/wiring_tables.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "placement/device_mask.h"

namespace drover::placement {
namespace {

using Set = SubsetTables::Set;

struct SubsetSums {
  Pairs pairs;
  int weakest = std::numeric_limits<int>::max();
  int numa_nodes = 0;

  auto grade() const { return std::tuple(pairs.nvlinks, weakest, pairs.nearness); }
};

/// Each set has what the set without its lowest device has, and the pairs of that device.
std::vector<SubsetSums> sum_up(const Wiring::Tables& wiring) {
  std::vector<SubsetSums> sums(std::size_t{1} << wiring.devices);
  for (std::size_t set = 1; set < sums.size(); ++set) {
    auto& sum = sums[set] = sums[without_lowest(set)];
    for_each_device(without_lowest(set), [&](int other) {
      const auto& link = wiring.link(lowest(set), other);
      sum.pairs += Pairs(link);
      sum.weakest = std::min(sum.weakest, link.nvlinks);
    });
    sum.numa_nodes = wiring.count_numa_nodes(set);
  }
  return sums;
}

SubsetTables::Order order_of(std::vector<Set> sets, const Wiring::Tables& wiring,
                             const std::vector<SubsetSums>& sums) {
  std::ranges::sort(sets, [&](Set a, Set b) {
    if (const auto order = sums[a].grade() <=> sums[b].grade(); order != 0) return order > 0;
    if (sums[a].numa_nodes != sums[b].numa_nodes) return sums[a].numa_nodes < sums[b].numa_nodes;
    return has_lower_indices(a, b);
  });
  std::vector<std::uint16_t> grades(sets.size());
  std::vector<NumaMask> numa(sets.size());
  std::uint16_t grade = 1;
  for (std::size_t i = sets.size(); i-- > 0;) {
    if (i + 1 < sets.size() && sums[sets[i]].grade() != sums[sets[i + 1]].grade()) ++grade;
    grades[i] = grade;
    numa[i] = wiring.numa_of(sets[i]);
  }
  return {std::move(sets), std::move(grades), std::move(numa)};
}

/// How each set ranks among all others as what is left.
std::vector<std::uint16_t> worth_of(const std::vector<SubsetSums>& sums) {
  std::vector<Set> sets(sums.size());
  std::iota(sets.begin(), sets.end(), Set{0});
  std::ranges::sort(sets, {}, [&](Set set) { return sums[set].pairs; });
  std::vector<std::uint16_t> worth(sums.size());
  for (std::size_t i = 1; i < sets.size(); ++i) {
    const bool more = sums[sets[i - 1]].pairs < sums[sets[i]].pairs;
    worth[sets[i]] = static_cast<std::uint16_t>(worth[sets[i - 1]] + (more ? 1 : 0));
  }
  return worth;
}

}  // namespace

Pairs::Pairs(const gpu::Link& link)
    : nvlinks(link.nvlinks),
      nearness(static_cast<int>(gpu::PcieLevel::kUnknown) - static_cast<int>(link.pcie)) {}

Pairs& Pairs::operator+=(const Pairs& other) {
  nvlinks += other.nvlinks;
  nearness += other.nearness;
  return *this;
}

Pairs& Pairs::operator-=(const Pairs& other) {
  nvlinks -= other.nvlinks;
  nearness -= other.nearness;
  return *this;
}

SubsetTables::SubsetTables(const Wiring::Tables& wiring)
    : by_size(static_cast<std::size_t>(wiring.devices) + 1),
      place(std::size_t{1} << wiring.devices),
      most_worth(by_size.size()) {
  const auto sums = sum_up(wiring);
  std::vector<std::vector<Set>> sets(by_size.size());
  for (std::size_t set = 0; set < place.size(); ++set)
    sets[static_cast<std::size_t>(std::popcount(set))].push_back(static_cast<Set>(set));
  for (std::size_t size = 0; size < by_size.size(); ++size) {
    by_size[size] = order_of(std::move(sets[size]), wiring, sums);
    const auto& order = by_size[size].sets;
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::uint16_t>(i);
  }
  worth = worth_of(sums);
  for (std::size_t set = 0; set < worth.size(); ++set) {
    auto& most = most_worth[static_cast<std::size_t>(std::popcount(set))];
    most = std::max(most, worth[set]);
  }
}

}  // namespace drover::placement

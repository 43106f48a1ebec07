#pragma once

// What the choice of devices is held against, written without the library that it judges: the best set by
// trying all, the lowest indices, and chance.

#include <compare>
#include <cstdint>
#include <random>

#include "topologies.h"

namespace drover::bench {

using Set = std::uint64_t;  ///< bit i is GPU i

/// The objective as far as it is about links; larger is better, field by field.
struct Interconnect {
  std::int64_t nvlinks = 0;   ///< over all pairs of the chosen
  std::int64_t weakest = 0;   ///< NVLinks of their weakest pair; 0 for one GPU
  std::int64_t nearness = 0;  ///< over PCIe, over all pairs of the chosen
  std::int64_t nvlinks_left = 0;
  std::int64_t nearness_left = 0;  ///< the same two over all pairs of the free that are not chosen

  auto operator<=>(const Interconnect&) const = default;
};

Interconnect interconnect_of(const Topology& topology, Set free, Set chosen);

/// Tries every set of `count` free GPUs: best interconnect, then fewest NUMA nodes, then lowest indices. This
/// is the floor that latencies are compared with.
Set try_all(const Topology& topology, Set free, int count);

/// The same for many free sets of one machine of up to 16 GPUs: what does not depend on the free set is added
/// up once.
class BruteForce {
 public:
  explicit BruteForce(const Topology& topology);
  /// best[k] is the best set of k of the free GPUs, for every k from 1 on.
  std::vector<Set> best(Set free) const;

 private:
  struct Facts {
    std::int64_t nvlinks, weakest, nearness;
    int numa_nodes;
  };
  std::vector<Facts> facts_;  ///< [set]
};

Set lowest_indices(Set free, int count);
Set any_set(Set free, int count, std::mt19937_64& random);

}  // namespace drover::bench

#pragma once

// The policies that Drover is compared with, written from their descriptions: bench/data/openb/README.md.
// Scores are kept by shape, and only nodes that changed since are scored again.

#include "simulation.h"

namespace drover::bench {

/// Any node that fits, and any of its GPUs.
std::unique_ptr<Policy> make_random(const Trace&, const Arrivals&, std::uint64_t seed);
/// The node that has the least left, of CPUs (of 128) and GPUs (of 8) alike.
std::unique_ptr<Policy> make_best_fit(const Trace&, const Arrivals&, std::uint64_t seed);
/// Fragmentation gradient descent: Weng et al., "Beware of Fragmentation", USENIX ATC 2023.
std::unique_ptr<Policy> make_fgd(const Trace&, const Arrivals&, std::uint64_t seed);

/// A distinct request of the list, memory aside, as FGD sees it.
struct TypicalPod {
  PodShape shape;  ///< its memory is 0
  double weight = 0;
};
/// The most frequent ones that together are `cover` of all pods; weights sum up to 1.
std::vector<TypicalPod> typical_pods(const Trace& trace, double cover = 0.95);

}  // namespace drover::bench

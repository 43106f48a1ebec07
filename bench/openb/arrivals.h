#pragma once

// In which order pods come and nodes stand: the published method (bench/data/openb/README.md). Deterministic.

#include <cstdint>
#include <vector>

#include "trace.h"

namespace drover::bench {

struct Arrivals {
  std::vector<int> pods;   ///< their shapes, in the order of arrival
  std::vector<int> nodes;  ///< indices into Trace::nodes, in the order that breaks ties
};

inline constexpr int kOfferedPercent = 130;  ///< of all GPUs

/// Shuffles the pods, adds clones of random ones or removes random ones until the demand is just below
/// kOfferedPercent, and shuffles the nodes.
Arrivals make_arrivals(const Trace& trace, std::uint64_t seed);

/// Whether an allocation is looked at after so much was offered: it rounds to `percent` of the capacity.
bool at_level(std::int64_t offered_milli, std::int64_t capacity_milli, int percent);

}  // namespace drover::bench

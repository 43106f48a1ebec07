#pragma once

// The fewest jobs that must go so that a gang fits. Asks the cluster itself after taking them away, so that
// whatever keeps the gang off (topology, shares, CPUs, memory) counts, and nothing goes that would not help.
//
// Exact for a gang of one while at most kMostSubsets subsets have to be looked at, and for larger gangs with
// up to kExactCandidates candidates. Beyond that a greedy answer is made, node by node from where the fewest
// have to go, of which no job can be spared.

#include <functional>
#include <optional>
#include <vector>

#include "placement/schedule.h"

namespace drover::placement::schedule {

inline constexpr int kMostSubsets = 20'000;
inline constexpr int kMostTrials = 2'000;           ///< placements tried for one gang
inline constexpr std::int64_t kEffort = 1'000'000;  ///< for all these trials together
inline constexpr std::size_t kExactCandidates = 12;

/// Positions in the candidates, ascending.
using Subset = std::vector<std::size_t>;

struct Eviction {
  Subset gone;
  std::vector<Decision> decisions;  ///< of the gang, when they are gone
};

struct EvictionQuery {
  const Gang& gang;
  /// Whoever goes rather comes first: of two sets of the same size, the one whose last member comes earlier
  /// is taken, then the one whose last but one does, …
  const std::vector<const RunningJob*>& candidates;
  /// Whether these may go together. True of every part of a set of which it is true.
  std::function<bool(const Subset&)> allowed;
  /// Whether it is enough, apart from room, that these go. True of every larger set.
  std::function<bool(const Subset&)> enough;
};

/// None when it does not fit even if all go that may. `world` holds the candidates, and is as before when
/// this returns. Not for a gang that fits already.
std::optional<Eviction> fewest_evictions(Cluster& world, const EvictionQuery& query);

}  // namespace drover::placement::schedule

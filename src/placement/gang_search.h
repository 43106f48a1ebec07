#pragma once

// The search for places of a gang's members: gang.h says what it finds.

#include <optional>
#include <vector>

#include "placement/gang.h"
#include "placement/gang_trial.h"

namespace drover::placement {

/// Members that are alike.
struct MemberClass {
  const Request* request = nullptr;
  std::vector<std::size_t> ranks;  ///< ascending
  std::size_t fitting = 0;         ///< nodes that one of them fits on now
};

struct GangSearch {
  std::optional<std::vector<Decision>> decisions;  ///< by rank
  std::size_t placed = 0;                          ///< members that found a place together, when not all did
  bool certain = false;                            ///< there is no place, when none was found
  std::optional<std::size_t> without_place;        ///< the first member that finds none even alone
};
GangSearch search(Cluster& cluster, const Gang& gang, Effort& effort);

// --- Its parts. `nodes` are Cluster::nodes().

/// Members that are alike, on the fewest nodes; as many as there is room for.
void put_packed(Cluster& cluster, Trial& trial, const std::vector<std::string>& nodes,
                const MemberClass& members);

enum class Outcome { kFound, kImpossible, kGaveUp };

/// Tries places one after the other, and goes back when a member finds none. What it finds is in the trial.
Outcome backtrack(Cluster& cluster, Trial& trial, const std::vector<std::string>& nodes,
                  const std::vector<MemberClass>& classes, Effort& effort);

/// No more than so many of the request fit on what is free.
std::size_t most_on(const Free& free, const Request& request, std::size_t wanted);
/// Whether what is free on all nodes is too little for all members, as far as counting tells.
bool exceeds(const std::vector<Free>& free, const std::vector<MemberClass>& classes);

}  // namespace drover::placement

#pragma once

// N containers at once or none (K11). Pure; deterministic.
//
// What is found, exactly:
//   - spread: members on distinct nodes if and only if there is such a choice (a bipartite matching);
//   - members that are all alike, pack or any: found whenever there is room, and pack uses the fewest nodes.
//     That holds where a member's GPUs need no particular company: with a required interconnect, locality or
//     different models, the members of one node are placed one after the other, each in its best place;
//   - members that differ, pack or any: those that are hard to place first, then a search that gives up after
//     some thousand trials. It may miss a place, and pack may use more nodes than it had to.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "placement/cluster.h"

namespace drover::placement {

struct Gang {
  std::vector<Request> members;  ///< by rank; not empty
  Arrangement arrangement = Arrangement::kPack;

  bool operator==(const Gang&) const = default;
};

/// As validate() for each member, and for their number; paths start with "/members/3".
Status validate(const Gang& gang);

/// One decision per member, by rank, such that all can be allocated together; neighbouring ranks are put
/// together where the arrangement lets them. A gang of one is an ordinary request. The cluster is as before
/// when this returns.
std::variant<std::vector<Decision>, Reasons> place(Cluster& cluster, const Gang& gang);

/// The same, without saying why when there is no place.
std::optional<std::vector<Decision>> try_place(Cluster& cluster, const Gang& gang);

/// An error when not even the empty cluster could hold all members at once, as far as the search finds out.
Status possible(const Cluster& cluster, const Gang& gang);

}  // namespace drover::placement

#pragma once

// N containers at once or none. Pure; deterministic.
//
// What is found:
//   - spread: members on distinct nodes if and only if there is such a choice (a bipartite matching);
//   - members that are all alike, pack or any: a place whenever there is room, and pack uses the fewest
//     nodes. That holds where a member's GPUs need no particular company. With a required interconnect,
//     locality or different models, the members of a node are placed one after the other, each in its best
//     place, and what follows holds when that fails;
//   - members that differ, pack or any: those that are hardest to place first, each in its best place; when
//     that fails, all other ways are tried until the effort is spent. For a few members on a few nodes that
//     means all. Pack may use more nodes than it had to.

#include <cstdint>
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

/// Whether all members ask for the same.
bool alike(const Gang& gang);

/// As validate() for each member, and for their number; paths start with "/members/3".
Status validate(const Gang& gang);

/// One decision per member, by rank, such that all can be allocated together; neighbouring ranks are put
/// together where the arrangement lets them. A gang of one is an ordinary request. The cluster is as before
/// when this returns.
std::variant<std::vector<Decision>, Reasons> place(Cluster& cluster, const Gang& gang);

/// How long to look on when the first way fails: about 100 ns each. Several searches may share it; when it
/// is spent, only the first way is tried.
struct Effort {
  std::int64_t left = 100'000;
};

/// The same, without saying why when there is no place.
std::optional<std::vector<Decision>> try_place(Cluster& cluster, const Gang& gang);
std::optional<std::vector<Decision>> try_place(Cluster& cluster, const Gang& gang, Effort& effort);

/// An error when it is certain that not even the empty cluster could hold all members at once.
Status possible(const Cluster& cluster, const Gang& gang);

}  // namespace drover::placement

#pragma once

// N containers at once or none (K11). Pure; deterministic.

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

/// An error when not even the empty cluster could hold all members at once.
Status possible(const Cluster& cluster, const Gang& gang);

}  // namespace drover::placement

#pragma once

// The search for places of a gang's members: gang.h says what it finds.

#include <optional>
#include <vector>

#include "placement/gang.h"

namespace drover::placement {

/// Members that are alike, hardest to place first.
struct MemberClass {
  const Request* request = nullptr;
  std::vector<std::size_t> ranks;    ///< ascending
  std::vector<std::string> fitting;  ///< nodes that one of them fits on now, best first
};
std::vector<MemberClass> member_classes(Cluster& cluster, const Gang& gang);

struct GangSearch {
  std::optional<std::vector<Decision>> decisions;  ///< by rank
  std::size_t placed = 0;                          ///< members that found a place together, when not all did
};
GangSearch search(Cluster& cluster, const Gang& gang);

}  // namespace drover::placement

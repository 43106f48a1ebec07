#pragma once

// Requests for parts of GPUs in MIG mode, on one node: what keeps them off, and what they get. The optimiser
// of whole GPUs and shares sees such a request as one without GPUs. Pure; deterministic.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "placement/decision.h"
#include "placement/feasibility.h"

namespace drover::placement {

/// Dimension::kParts, when the request does not fit beside what is given and what others have there. The
/// variant says why: PartObstacle.
std::optional<Obstacle> part_obstacle(const NodeState& state, const Node& node, const Request& request);
enum PartObstacle {
  kNoRoom,       ///< now
  kNoMigGpu,     ///< in MIG mode, of those that its filters allow
  kNoProfile,    ///< of that name
  kTooManyParts  ///< even if nobody had any
};

/// What a request gets that fits: a grant for each part, by index and place.
std::vector<Grant> grants_of_parts(const NodeState& state, const Node& node, const Request& request);

/// Whether the part can be given beside all that is given: it fits where it is wanted.
bool part_is_free(const NodeState& state, const Node& node, int device, const Instance& part);

/// "has no GPU in MIG mode", "has no room for a 3g.20gb: GPU 0 has 4g.20gb, GPU 1 has nothing left": a
/// clause.
std::string part_clause(const NodeState& state, const Node& node, const Request& request,
                        const Obstacle& obstacle);

/// The node as if nobody had made an instance on it, and nothing ailed its GPUs in MIG mode.
std::shared_ptr<const Node> with_all_parts(const std::shared_ptr<const Node>& node);

}  // namespace drover::placement

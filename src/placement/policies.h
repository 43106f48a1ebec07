#pragma once

// Which of several places is best. Pure; deterministic.
//
// Pack, in this order:
//   1. a node of cheaper kind: less GPU memory, lower compute capability, and no NVLink where one GPU is
//      wanted; CPU-only work first goes where no GPUs are;
//   2. a share opens no idle GPU, and leaves the least of the GPUs that it gets;
//   3. the fewest idle GPUs are left on the node, so that idle nodes stay whole (K12);
//   4. several GPUs: the best interconnect, as in device_choice.h;
//   5. the most NVLinks are left among the idle GPUs: wide sets stay;
//   6. the fewest CPUs are left.
// Spread: CPU-only work goes where no GPUs are; then the most of the GPUs, of idle GPUs, interconnect, and
// CPUs is left. Ties go to the node that was added first.

#include <compare>
#include <cstdint>

#include "placement/cluster.h"
#include "placement/feasibility.h"
#include "placement/node_state.h"

namespace drover::placement {

/// Smaller is better.
struct Score {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  auto operator<=>(const Score&) const = default;
};

/// `worth` ranks the node's kind among those of the cluster: 0 is the cheapest. The request fits on the node
/// with these devices.
Score score(NodePolicy policy, const NodeState& before, const Shape& shape, DeviceMask devices, int worth);

/// The node as it is when the request got these devices.
NodeState after(const NodeState& before, const Shape& shape, DeviceMask devices);

}  // namespace drover::placement

#pragma once

// Which of several places is best. Pure; deterministic.
//
// Pack, in this order:
//   1. a node of cheaper kind: less GPU memory, lower compute capability, and no NVLink where one GPU is
//      wanted; CPU-only work first goes where no GPUs are;
//   2. a share opens no idle GPU, and leaves the least of the GPUs that it gets;
//   3. the fewest idle GPUs are left on the node, so that idle nodes stay whole;
//   4. several GPUs: the best interconnect, as in device_choice.h;
//   5. the fewest NVLinks between idle GPUs are lost: wide sets stay;
//   6. the fewest CPUs are left.
// Spread: CPU-only work goes where no GPUs are; then the most of the GPUs, interconnect, and CPUs is left.
// Fragmentation: fragmentation.h; of a share of one GPU, every filling is looked at.
// Ties go to the node that was added first. On the node itself the devices are those of device_choice.h, but
// a share of one GPU goes to the fullest that fits (spread: to the emptiest).

#include <optional>
#include <vector>

#include "placement/cluster.h"
#include "placement/feasibility.h"
#include "placement/fragmentation.h"
#include "placement/node_state.h"
#include "placement/options.h"
#include "placement/score.h"

namespace drover::placement {

/// What nodes are compared by, besides themselves.
struct PolicyContext {
  NodePolicy policy = NodePolicy::kPack;
  std::vector<int> worth;  ///< [NodeKind::id]: its rank among the kinds of the cluster; 0 is the cheapest
  Fragmentation fragmentation;

  /// Whether the comparison of nodes depends on how many CPUs are asked for.
  bool needs_cpus() const { return policy == NodePolicy::kFragmentation; }
};

struct Choice {
  Score score;
  DeviceMask devices = 0;
};

/// The best that the node offers. Nothing when conditions on sets of devices are not met; other conditions
/// are met: obstacle(). Free CPUs and memory are not looked at.
std::optional<Choice> best_on(const PolicyContext& context, const NodeState& state, const Shape& shape,
                              Locality locality, OptionMemory* memory = nullptr);

}  // namespace drover::placement

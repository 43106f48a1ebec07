#pragma once

// The best filling of a node under given rewards: the pricing step of filling_bound.h. Exact for the rounded
// sizes, by dynamic programming over CPUs, the room of one GPU, and the number of idle GPUs.

#include <cstdint>
#include <vector>

#include "trace.h"

namespace drover::bench {

/// Pods that cannot be told apart once their CPUs are rounded and their memory is ignored.
struct PodGroup {
  int cpus = 0;   ///< in steps, rounded down
  int milli = 0;  ///< of one GPU, in steps, rounded down
  int gpus = 0;
  std::uint32_t models = 0;
  double demand = 0;  ///< milli-GPU

  bool shares(int whole) const { return gpus == 1 && milli < whole; }
};

/// Empty nodes that are alike.
struct NodeGroup {
  int cpus = 0;  ///< in steps
  int gpus = 0;
  int model = 0;
  int count = 0;
};

class NodeFillings {
 public:
  explicit NodeFillings(const Trace& trace);

  const std::vector<PodGroup>& pods() const { return pods_; }
  const std::vector<NodeGroup>& nodes() const { return nodes_; }
  int group_of(int shape) const { return group_of_[static_cast<std::size_t>(shape)]; }

  struct Filling {
    double reward = 0;
    std::vector<int> pods;  ///< groups; one entry for each pod
  };
  /// [node group]: the filling that gains most when a pod of group g gains rewards[g].
  std::vector<Filling> best(const std::vector<double>& rewards) const;

 private:
  std::vector<PodGroup> pods_;
  std::vector<NodeGroup> nodes_;
  std::vector<int> group_of_;
  int whole_ = 0;  ///< steps of one GPU
};

}  // namespace drover::bench

#pragma once

// Topology spread constraints that must hold (`DoNotSchedule`): in no place may there be many more pods like
// this one than in another. Pure.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kube/scheduler/cluster.h"

namespace drover::kube::scheduler {

class TopologySpread {
 public:
  /// Both outlive it. A pod with constraints costs as much as there are pods in the cluster.
  TopologySpread(const Cluster& cluster, const Pod& pod);

  /// What stands against the node, in kube-scheduler's words; "" when nothing does.
  std::string_view refusal(const Node& node) const;

 private:
  struct Spread {
    const SpreadConstraint* constraint;
    std::map<std::string, std::int64_t, std::less<>> pods = {};  ///< by the value of the label
    std::int64_t least = 0;                                      ///< pods in the emptiest place
    bool counts_itself = false;
  };

  static Spread spread(const Cluster& cluster, const Pod& pod, const SpreadConstraint& constraint);

  std::vector<Spread> spreads_;
};

}  // namespace drover::kube::scheduler

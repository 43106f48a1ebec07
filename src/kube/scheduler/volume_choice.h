#pragma once

// Volumes for claims that wait for their first pod: which of those that there are, or whether one can be made
// for a node, by the rules of kube-scheduler's plugin VolumeBinding. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "kube/scheduler/cluster.h"
#include "kube/scheduler/volumes.h"

namespace drover::kube::scheduler {

/// Of the claims of one pod that are not bound. What it is given outlives it.
class UnboundClaims {
 public:
  explicit UnboundClaims(const Cluster& cluster) : cluster_(cluster) {}

  void add(const VolumeClaim& claim, const StorageClass& storage_class);
  bool empty() const { return claims_.empty(); }

  struct Choice {
    std::vector<VolumeDecision> decisions = {};  ///< one for each claim
    std::vector<std::string_view> reasons = {};  ///< why not on this node, in kube-scheduler's words
  };
  Choice choose(const NodeState& node) const;

 private:
  struct Unbound {
    const VolumeClaim* claim;
    const StorageClass* storage_class;
    const Volume* own = nullptr;                 ///< that is its already
    std::vector<const Volume*> candidates = {};  ///< else those that will do, the smallest first
  };

  static const Volume* find(const Unbound& unbound, const NodeState& node,
                            const std::vector<VolumeDecision>& taken);
  bool has_room(const Unbound& unbound, const NodeState& node) const;

  const Cluster& cluster_;
  std::vector<Unbound> claims_;  ///< the smallest first
};

}  // namespace drover::kube::scheduler

#pragma once

// Required affinity and anti-affinity between pods, in both directions: what the pod asks for, and what the
// pods that are there do not want near them. Pure.

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "kube/scheduler/cluster.h"

namespace drover::kube::scheduler {

class PodAffinity {
 public:
  /// Both outlive it. A pod without terms costs as much as there are different anti-affinities in the
  /// cluster, one with terms as much as there are pods.
  PodAffinity(const Cluster& cluster, const Pod& pod);

  /// What stands against the node, in kube-scheduler's words; "" when nothing does.
  std::string_view refusal(const Node& node) const;

 private:
  /// Values by the key of the label.
  using Places = std::map<std::string, std::set<std::string>, std::less<>>;

  static bool is_in(const Places& places, const Node& node);
  void look_at_pods(const Cluster& cluster, const Pod& pod);

  const PodTemplate& wants_;
  Places liked_;     ///< where a pod is that all terms select
  Places disliked_;  ///< where a pod is that a term selects
  Places shunned_;   ///< where a pod is that does not want this one
  bool may_be_first_ = false;
};

}  // namespace drover::kube::scheduler

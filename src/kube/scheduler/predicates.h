#pragma once

// On which nodes of a cluster a pod may run, by the rules of kube-scheduler's filters, and why not on the
// others, in its words. Pure.
//
//   const Predicates predicates(cluster, pod);       // once for a pod
//   for (const auto& [name, state] : cluster.nodes())
//     if (predicates.check(state).fits()) …
//
// What is not asked here: the pod's scheduling gates, its resource claims, and what nodes give it by claim.
//
// What a pod has in common with all nodes is found out once, when Predicates are made, so that a node costs
// little. Cluster and pod outlive them, and do not change in between. Const calls may come from several
// threads.

#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/scheduler/cluster.h"
#include "kube/scheduler/pod_affinity.h"
#include "kube/scheduler/topology_spread.h"
#include "kube/scheduler/volume_choice.h"

namespace drover::kube::scheduler {

/// In the order in which they are asked. All but the first are filters of kube-scheduler.
enum class Predicate {
  kSupported,  ///< we know how to decide on all that the pod uses
  kNodeUnschedulable,
  kNodeName,
  kTaintToleration,
  kNodeAffinity,
  kNodePorts,
  kNodeResourcesFit,
  kVolumeRestrictions,
  kVolumeBinding,
  kVolumeZone,
  kPodTopologySpread,
  kInterPodAffinity,
  kNodeDeclaredFeatures,
};
inline constexpr std::size_t kPredicates = 13;
/// "TaintToleration"; "Supported".
std::string_view name_of(Predicate predicate);

/// Why a node does not do: by the first predicate that refuses it, as kube-scheduler counts it.
struct Verdict {
  Predicate predicate = Predicate::kSupported;
  /// What it says; empty when the node fits. They live as long as the Predicates.
  std::vector<std::string_view> reasons = {};

  bool fits() const { return reasons.empty(); }
};

class Predicates {
 public:
  Predicates(const Cluster& cluster, const Pod& pod);

  Verdict check(const NodeState& node) const;
  /// What this predicate alone says; empty when the node does.
  std::vector<std::string_view> reasons(Predicate predicate, const NodeState& node) const;
  /// For its claims that are not bound yet, on a node that fits.
  std::vector<VolumeDecision> volumes_on(const NodeState& node) const {
    return unbound_.choose(node).decisions;
  }

 private:
  using Reasons = std::vector<std::string_view>;
  struct DriverReasons {
    std::string missing;  ///< "": nodes need not have it
    std::string limited;
  };

  void look_at_resources();
  void look_at_taints();
  void look_at_claims();
  void look_at_volume(const VolumeClaim& claim);
  void look_at_unbound(const VolumeClaim& claim);
  void look_at_driver(const std::string& name, bool is_needed);
  void refuse(Predicate predicate, std::string reason);
  Reasons at(Predicate predicate, const NodeState& node) const;
  Reasons resources(const NodeState& node) const;
  Reasons support(const NodeState& node) const;
  bool has_free_ports(const NodeState& node) const;
  Reasons volumes(const NodeState& state) const;
  bool is_in_zones(const Node& node) const;

  const Cluster& cluster_;
  const Pod& pod_;
  const PodTemplate& wants_;
  /// What no node can mend.
  std::array<std::vector<std::string>, kPredicates> everywhere_;
  std::set<const Taints*> tolerated_;
  bool tolerates_unschedulable_ = false;
  std::map<std::string, std::string, std::less<>>
      insufficient_;                             ///< "Insufficient …" by the name of the resource
  std::set<std::string, std::less<>> by_claim_;  ///< of its resources: by nodes that offer none
  std::vector<const Volume*> volumes_;
  UnboundClaims unbound_;
  bool lacks_volume_ = false;
  bool claim_is_taken_ = false;
  std::map<std::string, DriverReasons, std::less<>> drivers_;  ///< of its volumes
  PodAffinity affinity_;
  TopologySpread spread_;
};

/// Whether one of them tolerates it.
bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);
/// The first that keeps pods away (NoSchedule, NoExecute) and is not tolerated; nullptr when there is none.
const Taint* untolerated(const Taints& taints, const std::vector<Toleration>& tolerations);
/// By its node selector and its required node affinity.
bool selects_node(const PodTemplate& pod, const Node& node);

}  // namespace drover::kube::scheduler

#pragma once

// Whose shares of GPUs are watched on a node of a cluster: those of claims and of the device plugin's
// replicas, and of each the containers that have it. Pure.

#include <set>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "kube/dra/preparer.h"
#include "kube/events/event_book.h"
#include "kube/kubelet/container_runtime.h"
#include "kube/kubelet/pod_resources.h"
#include "kube/plugin/replica_pages.h"
#include "kube/usage/attribution.h"
#include "share/watch.h"

namespace drover::kube {

/// A replica that a container has. Unless it has pages too, nothing holds it to that.
struct HeldReplica {
  std::string pod_namespace, pod, container;
  std::string id;  ///< "GPU-…::2"
  share::Limit limit;
};

/// What is known of the node's shares at one time.
struct NodeShares {
  std::vector<dra::ClaimShare> claims;
  std::vector<GuardedReplica> guarded;
  std::vector<HeldReplica> unsure;  ///< whether they are guarded: of those that could be
  std::vector<ContainerUse> uses;   ///< as the kubelet tells them

  bool empty() const { return claims.empty() && guarded.empty() && unsure.empty(); }
};

/// What containers may have, together, of GPUs that others have too.
struct PodShare {
  std::string name;  ///< of its allowances: a claim's uid, the name of a replica's pages, or the replica's id
  EventTarget about;  ///< who is told: the claim, or the pod; without a name while no container runs
  std::vector<share::Limit> limits;
  std::string pages;                 ///< the folder with them (share/pages.h); "": it is counted
  std::set<std::string> containers;  ///< ids of those that run
};

std::vector<PodShare> pod_shares(const NodeShares& shares, const ClaimNames& names,
                                 const std::vector<RunningContainer>& running);

/// Allowances are named as shares are; what the watch calls tasks are ids of containers that run. Not watched
/// is who is in a container that has two shares of one GPU, neither of which is guarded: nobody knows which
/// of them it uses.
share::Shares watched_shares(const gpu::Inventory& inventory, const std::vector<PodShare>& shares,
                             const std::vector<RunningContainer>& running);

}  // namespace drover::kube

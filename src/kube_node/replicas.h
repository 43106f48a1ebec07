#pragma once

// Holds those who share a node's GPUs by limits to their replicas: by an MPS daemon, or by the guard. Thread
// safe; blocks.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/cli.h"
#include "kube/plugin/pool.h"
#include "kube/plugin/replica_pages.h"
#include "kube/usage/pod_shares.h"
#include "kube_node/arrangements.h"
#include "kube_node/gpus.h"
#include "workload/resources.h"

namespace drover {

class KubeReplicas {
 public:
  using Clock = kube::ReplicaPages::Clock;

  /// All outlive it. `cdi`: whether the container runtime does it. `warn` hears a sentence.
  KubeReplicas(const cli::KubeNodeOptions& options, KubeGpus& gpus, KubeArrangements& arrangements,
               const std::atomic<kube::CdiSupport>& cdi, std::function<void(const std::string&)> warn);

  /// The folder of their pages, in that of what is kept.
  static std::string folder(const std::string& state) { return state + "/replicas"; }

  /// As kube::ShareReplica says.
  Status share(const kube::ReplicaShare& share, const std::string& id, kube::ContainerGrant* grant);
  /// What an earlier process has left; before anybody is given anything.
  Status take_up() { return pages_.take_up(Clock::now()); }
  /// What the kubelet said of containers when it was asked, then.
  Status saw(const std::vector<kube::ContainerUse>& uses, Clock::time_point asked);
  /// What containers are told by is there, and says what it would say now.
  Status restore() const { return pages_.restore(); }
  /// Adds those that containers have now.
  void add_to(kube::NodeShares& shares, const kube::Pool& pool) const;

 private:
  Status guard(const kube::ReplicaShare& share, const std::string& id, kube::ContainerGrant& grant);
  Result<kube::GpuEdits> edits_for(const kube::ReplicaShare& share) const;

  KubeGpus& gpus_;
  KubeArrangements& arrangements_;
  const std::atomic<kube::CdiSupport>& cdi_;
  const std::function<void(const std::string&)> warn_;
  const workload::ShareBy share_by_;
  kube::ReplicaPages pages_;
};

}  // namespace drover

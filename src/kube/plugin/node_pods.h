#pragma once

// Follows the pods of this node: which GPUs were chosen for them, and writes into them which they have got.
// Needs the rights to list, watch and patch pods. Thread safe.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log_once.h"
#include "kube/client/informer.h"
#include "kube/plugin/chosen_gpus.h"

namespace drover::kube {

struct NodePodsOptions {
  std::string node;  ///< the Node's name
  /// What the kubelet tells now. May block.
  std::function<Result<PodResources>()> resources;
  /// UIDs of the pods that run here: one that was removed may still have what another of its name is to get.
  /// May block.
  std::function<Result<std::map<PodName, std::string>>()> pod_uids;
  std::function<void(const std::string& sentence)> warn;  ///< from any thread; may be absent
  std::chrono::milliseconds patience{2000};               ///< with either server, for a pod that waits
  std::chrono::milliseconds again{10'000};  ///< a pod is not corrected sooner: others may write too
};

class NodePods {
 public:
  explicit NodePods(NodePodsOptions options);

  /// Until then nothing is known. Once.
  void follow(std::shared_ptr<Api> api);
  /// The kubelet is about to give devices to a pod. Where none is known that may be it, the API server is
  /// asked: the kubelet knows of no pod that it does not.
  DeviceHint hint(const DeviceQuestion& question);
  /// Writes which of these GPUs pods have, where their annotation does not say so. Blocks; one thread's.
  void correct(const std::set<std::string>& gpus);

 private:
  std::shared_ptr<Api> api() const;
  Result<PodResources> ask_kubelet() const;
  void note(const Change<NodePod>& change);
  std::vector<NodePod> known() const;
  Result<std::vector<NodePod>> ask(Api& api) const;
  Status write(Api& api, const ChoiceCorrection& correction) const;

  const NodePodsOptions options_;
  LogOnce trouble_;                                                         ///< of correct()
  std::map<std::string, std::chrono::steady_clock::time_point> corrected_;  ///< by uid; of correct()
  mutable std::mutex mutex_;                                                ///< of what follows
  std::map<std::string, std::uint64_t> bound_;  ///< by uid, with which version they came
  std::shared_ptr<Api> api_;
  std::optional<Informer<NodePod>> informer_;  ///< ends first
};

}  // namespace drover::kube

#pragma once

// Keeps claims and replicas to their shares of GPUs: looks at their pages, gives their turns, and ends the
// containers that go round the guard, as the daemon does with tasks (share/watch.h). Tells it all in Events
// of the claims and of the pods. Thread safe.

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/cli.h"
#include "kube/client/api.h"
#include "kube/events/event_recorder.h"
#include "kube/kubelet/container_runtime.h"
#include "kube/usage/pod_shares.h"
#include "kube_node/gpus.h"
#include "metrics/gpu_metrics.h"
#include "share/watch.h"

namespace drover {

class KubeShares {
 public:
  /// Both outlive it. `warn` hears a sentence.
  KubeShares(const cli::KubeNodeOptions& options, KubeGpus& gpus,
             std::function<void(const std::string&)> warn);

  /// From now on Events are written.
  void reach(std::shared_ptr<kube::Api> api);
  /// Who has shares now, and by which containers; ends those that are to be. One at a time; blocks while the
  /// container runtime answers, and while there are no shares not at all.
  Status look(const kube::NodeShares& shares);

  void add_to(metrics::MachineFacts& facts) const;

 private:
  void tell(const std::vector<kube::PodShare>& shares);
  void tell(const kube::PodShare& share) const;
  void judge();
  void tell(const kube::RunningContainer& container, const std::string& words) const;
  std::string in_words(const share::Verdict& verdict) const;
  std::string in_words(const std::string& gpu) const;
  kube::EventRecorder* events() const;

  const cli::KubeNodeOptions& options_;
  KubeGpus& gpus_;
  const std::function<void(const std::string&)> warn_;
  share::Shares watched_;                                     ///< this and the next: look()'s
  std::set<std::pair<std::string, kube::EventTarget>> told_;  ///< in Events, of which share
  mutable std::mutex mutex_;                                  ///< of what follows
  std::vector<kube::RunningContainer> running_;
  std::vector<share::Verdict> verdicts_;
  std::shared_ptr<kube::Api> api_;
  std::unique_ptr<kube::EventRecorder> events_;  ///< goes before it; made once
  share::Watch watch_;                           ///< goes first: its thread tells verdicts
};

}  // namespace drover

#pragma once

// Keeps claims and replicas to their shares of GPUs: looks at their pages, gives their turns, and ends the
// containers that go round the guard, as the daemon does with tasks (share/watch.h): on a thread of its own,
// as soon as they are seen. Tells it all in Events of the claims and of the pods. Thread safe.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
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
  /// Who has shares now, and by which containers. One at a time; blocks while the container runtime answers,
  /// and while there are no shares not at all.
  Status look(const kube::NodeShares& shares);
  /// Waits for so long, or until a process is seen on a shared GPU that is in none of the containers known:
  /// one may have started since. Whether that was so.
  bool wait_for_newcomer(std::chrono::milliseconds patience);
  /// From now on nobody waits.
  void stop_waiting();

  void add_to(metrics::MachineFacts& facts) const;

 private:
  void tell(const std::vector<kube::PodShare>& shares);
  void tell(const kube::PodShare& share) const;
  void keep_judging(const std::stop_token& stop);
  void judge(const share::Verdict& verdict, const kube::RunningContainer& container) const;
  gpu::TaskOf noticing(gpu::TaskOf task_of);
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
  kube::Newcomers newcomers_;
  bool newcomer_ = false;  ///< since somebody waited for one
  bool stopped_ = false;
  std::condition_variable_any news_;  ///< of the verdicts, and of newcomers
  std::shared_ptr<kube::Api> api_;
  std::unique_ptr<kube::EventRecorder> events_;  ///< goes before it; made once
  std::jthread judge_;
  share::Watch watch_;  ///< goes first: its thread tells verdicts
};

}  // namespace drover

#pragma once

// How long the GPUs of this node's pods did nothing: puts the GPUs, the kubelet, the container runtime and
// /proc together. Thread safe; who asks waits for who asked before.

#include <mutex>

#include "base/result.h"
#include "cli/cli.h"
#include "kube/usage/idle_pods.h"
#include "kube_node/gpus.h"

namespace drover {

class KubeIdle {
 public:
  /// Both outlive it.
  KubeIdle(const cli::KubeNodeOptions& options, KubeGpus& gpus) : options_(options), gpus_(gpus) {}

  /// Blocks for nine seconds at most. kUnavailable when the kubelet or the runtime does not answer.
  Result<kube::IdleTimes> look();

 private:
  const cli::KubeNodeOptions& options_;
  KubeGpus& gpus_;
  std::mutex mutex_;
  kube::IdlePods pods_;
};

}  // namespace drover

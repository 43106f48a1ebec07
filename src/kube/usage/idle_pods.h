#pragma once

// How long the GPUs of a node's pods did nothing. Whoever asks is told, however often others ask: it is kept
// when each pod was last seen to make a GPU work. Not thread safe.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "gpu/usage.h"
#include "kube/kubelet/pod_resources.h"
#include "metrics/processes.h"

namespace drover::kube {

/// By the uids of pods.
using IdleTimes = std::map<std::string, std::chrono::milliseconds>;

class IdlePods {
 public:
  using Clock = std::chrono::steady_clock;

  struct Sight {
    std::map<std::string, gpu::GpuUsage> usage;  ///< of each GPU, by UUID
    /// As of gpu_holders().
    std::map<std::string, std::vector<metrics::Owner>> holders;
    std::map<PodName, std::string> uids;  ///< of pods that run
    /// Empty where processes of pods are not seen.
    std::function<metrics::Owner(std::uint32_t pid)> owner_of;
  };

  /// Of those pods that have GPUs now. One that is seen for the first time has just worked.
  IdleTimes update(const Sight& sight, Clock::time_point now);

 private:
  std::map<std::string, Clock::time_point> busy_at_;  ///< by uid
};

}  // namespace drover::kube

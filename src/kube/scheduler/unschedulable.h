#pragma once

// Why a pod waits, in the words that people know from kube-scheduler, and then in ours: "0/5 nodes are
// available: 3 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint(s). 3 nodes lack 2 free GPUs.
// Place 4 of 12 in the queue 'research'. What helps: ask for 1 GPU." Pure.

#include <cstddef>
#include <string>

#include "placement/decision.h"

namespace drover::kube::scheduler {

/// As long as an Event's message may be.
inline constexpr std::size_t kLongestMessage = 1024;

struct Waits {
  placement::Reasons reasons;
  std::size_t nodes = 0;  ///< that there are
  std::size_t place = 0;  ///< in its queue, from 1
  std::size_t of = 0;
  std::string queue;
};

std::string unschedulable_message(const Waits& waits, const std::string& gpu_resource);

}  // namespace drover::kube::scheduler

#pragma once

// What runs on one GPU now: the processes of the fault file, and those that live, as one. Pure.

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/faults.h"
#include "sim/live.h"

namespace drover::sim {

struct RunningProcess {
  unsigned int pid = 0;
  std::uint64_t bytes = 0;
  Utilization utilization;
  std::optional<unsigned int> gpu_instance, compute_instance;  ///< on a GPU in MIG mode
};

struct Activity {
  std::vector<RunningProcess> processes;  ///< the fault file's come first
  std::uint64_t unseen_bytes = 0;         ///< of processes that the caller's PID namespace does not have
  Utilization utilization;                ///< of the GPU

  /// Of all processes; on a GPU in MIG mode, of those in one GPU instance.
  std::uint64_t used_bytes(std::optional<unsigned int> gpu_instance = std::nullopt) const;
};

/// How busy the GPU is follows from what lives on it, unless the fault file says it. Processes of the fault
/// file that do not say what they do share evenly what it says of the GPU.
Activity activity_of(const GpuFaults& faults, const std::vector<LiveUse>& live);

}  // namespace drover::sim

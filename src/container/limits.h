#pragma once

// What a container may take up, in the kernel's terms: the same whoever starts it. Pure.

#include <algorithm>
#include <cstdint>

#include "workload/task.h"

namespace drover::container {

struct CpuLimits {
  std::uint64_t shares = 0;
  std::uint64_t quota_micros = 0;  ///< 0: none
  std::uint64_t period_micros = 100'000;
};

/// For a task that is given CPUs. The kernel takes no fewer shares than 2, and no quota below 1 ms or from
/// 2^44 µs on.
inline CpuLimits cpu_limits(const workload::Task& task) {
  constexpr std::uint64_t kMostQuota = 1ULL << 43;
  CpuLimits limits;
  limits.shares =
      std::max<std::uint64_t>(static_cast<std::uint64_t>(task.resources.milli_cpus) * 1024 / 1000, 2);
  if (const auto most = static_cast<std::uint64_t>(task.most_milli_cpus()); most > 0)
    limits.quota_micros = std::clamp<std::uint64_t>(most * limits.period_micros / 1000, 1000, kMostQuota);
  return limits;
}

/// Bytes that a task may use on a machine with so many; 0: no limit. Never more than the machine has,
/// whatever the task says: it would take all that can be swapped, too.
inline std::uint64_t memory_limit(const workload::Task& task, std::uint64_t machine_bytes) {
  const auto most = task.most_memory_bytes();
  if (!task.may_exceed_memory() || machine_bytes == 0) return most;
  const auto ceiling = std::max(machine_bytes, task.resources.memory_bytes);
  return most == 0 ? ceiling : std::min(most, ceiling);
}

/// Of a task on a machine with so much memory: when that runs short, who may use more than he was given goes
/// first, as Mesos and Kubernetes have it. 0 for a task that may not.
inline int oom_score_adj_of(const workload::Task& task, std::uint64_t machine_bytes) {
  constexpr double kFirst = 1000;
  if (!task.may_exceed_memory() || machine_bytes == 0) return 0;
  const auto given = static_cast<double>(std::min(task.resources.memory_bytes, machine_bytes));
  return static_cast<int>(kFirst - kFirst * given / static_cast<double>(machine_bytes));
}

}  // namespace drover::container

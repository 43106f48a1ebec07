#include "sim/activity.h"

#include <algorithm>
#include <cmath>

namespace drover::sim {
namespace {

/// What is busy at all does not look idle.
Utilization utilization_of(double share) {
  return {.sm = static_cast<unsigned int>(std::ceil(100 * std::clamp(share, 0.0, 1.0)))};
}

/// Of each of so many processes that do not say it.
Utilization even_share(const Utilization& all, std::size_t count) {
  const auto number = static_cast<unsigned int>(std::max<std::size_t>(count, 1));
  return {all.sm / number, all.memory / number, all.encoder / number, all.decoder / number};
}

}  // namespace

std::uint64_t Activity::used_bytes(std::optional<unsigned int> gpu_instance) const {
  std::uint64_t used = gpu_instance ? 0 : unseen_bytes;
  for (const auto& process : processes)
    if (!gpu_instance || process.gpu_instance == gpu_instance) used += process.bytes;
  return used;
}

Activity activity_of(const GpuFaults& faults, const std::vector<LiveUse>& live) {
  Activity activity;
  const auto stated = faults.utilization.value_or(Utilization{});
  const auto share = even_share(stated, faults.processes.size());
  for (const auto& process : faults.processes)
    activity.processes.push_back({process.pid, process.memory_mib << 20, process.utilization.value_or(share),
                                  process.gpu_instance, process.compute_instance});
  double busy = 0;
  for (const auto& use : live) {
    busy += use.busy;
    if (use.pid == 0)
      activity.unseen_bytes += use.bytes;
    else
      activity.processes.push_back(
          {.pid = use.pid, .bytes = use.bytes, .utilization = utilization_of(use.busy)});
  }
  activity.utilization = faults.utilization ? stated : utilization_of(busy);
  return activity;
}

}  // namespace drover::sim

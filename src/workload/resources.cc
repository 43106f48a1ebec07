#include "workload/resources.h"

#include <algorithm>
#include <climits>

namespace drover::workload {

int Resources::gpu_count() const {
  std::int64_t sum = 0;
  for (const auto& claim : gpus) sum = std::min<std::int64_t>(sum + claim.count, INT_MAX);
  return static_cast<int>(std::max<std::int64_t>(sum, 0));
}

Share held_of(const Share& share, std::uint64_t memory_bytes) {
  if (share.memory_bytes == 0) {
    const auto milli = static_cast<std::uint64_t>(share.milli);
    return {share.milli, memory_bytes / 1000 * milli + memory_bytes % 1000 * milli / 1000};
  }
  if (share.memory_bytes > memory_bytes) return {0, 0};
  __extension__ using Wide = unsigned __int128;
  return {static_cast<int>(Wide{share.memory_bytes} * 1000 / memory_bytes), share.memory_bytes};
}

}  // namespace drover::workload

#include "workload/resources.h"

#include <algorithm>
#include <climits>

namespace drover::workload {

int Resources::gpu_count() const {
  std::int64_t sum = 0;
  for (const auto& claim : gpus) sum = std::min<std::int64_t>(sum + claim.count, INT_MAX);
  return static_cast<int>(std::max<std::int64_t>(sum, 0));
}

}  // namespace drover::workload

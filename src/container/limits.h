#pragma once

// What a container may take up, in the kernel's terms: the same whoever starts it. Pure.

#include <algorithm>
#include <cstdint>

namespace drover::container {

struct CpuLimits {
  std::uint64_t shares = 0;
  std::uint64_t quota_micros = 0;
  std::uint64_t period_micros = 100'000;
};

/// `milli_cpus` is more than 0. The kernel takes no quota below 1 ms and no fewer shares than 2.
inline CpuLimits cpu_limits(std::int64_t milli_cpus) {
  const auto milli = static_cast<std::uint64_t>(milli_cpus);
  CpuLimits limits;
  limits.shares = std::max<std::uint64_t>(milli * 1024 / 1000, 2);
  limits.quota_micros = std::max<std::uint64_t>(milli * limits.period_micros / 1000, 1000);
  return limits;
}

}  // namespace drover::container

#pragma once

// What a Wiring knows. Only wiring.cc and device_choice.cc read this.

#include <array>
#include <optional>
#include <vector>

#include "placement/wiring.h"

namespace drover::placement {

inline constexpr int kNumaBits = 8;  ///< of a NumaMask

struct Wiring::Tables {
  Tables(const std::vector<std::vector<gpu::Link>>& matrix, const std::vector<std::optional<int>>& nodes);

  const gpu::Link& link(int a, int b) const { return links[static_cast<std::size_t>(a * devices + b)]; }

  int devices = 0;
  std::vector<gpu::Link> links;  ///< row by row
  std::vector<int> numa_nodes;
  std::array<DeviceMask, kNumaBits> numa_devices{};  ///< [i]: the devices of numa_nodes[i]
};

}  // namespace drover::placement

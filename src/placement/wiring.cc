#include "placement/wiring.h"

#include <algorithm>
#include <cassert>

#include "placement/wiring_tables.h"

namespace drover::placement {

Wiring::Wiring(const std::vector<std::vector<gpu::Link>>& links,
               const std::vector<std::optional<int>>& numa_nodes)
    : tables_(std::make_shared<const Tables>(links, numa_nodes)) {}

int Wiring::devices() const {
  return tables_->devices;
}
const gpu::Link& Wiring::link(int a, int b) const {
  return tables_->link(a, b);
}
const std::vector<int>& Wiring::numa_nodes() const {
  return tables_->numa_nodes;
}

Wiring::Tables::Tables(const std::vector<std::vector<gpu::Link>>& matrix,
                       const std::vector<std::optional<int>>& nodes)
    : devices(static_cast<int>(matrix.size())) {
  assert(devices <= kMaxDevices && nodes.size() == matrix.size());
  for (const auto& row : matrix) links.insert(links.end(), row.begin(), row.end());
  assert(links.size() == matrix.size() * matrix.size());
  for (const auto& node : nodes)
    if (node) numa_nodes.push_back(*node);
  std::ranges::sort(numa_nodes);
  numa_nodes.erase(std::ranges::unique(numa_nodes).begin(), numa_nodes.end());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i]) continue;
    const auto bit = std::ranges::lower_bound(numa_nodes, *nodes[i]) - numa_nodes.begin();
    if (bit < kNumaBits) numa_devices[static_cast<std::size_t>(bit)] |= DeviceMask{1} << i;
  }
}

}  // namespace drover::placement

#include "placement/wiring.h"

#include <algorithm>
#include <cassert>

#include "placement/device_mask.h"
#include "placement/wiring_tables.h"

namespace drover::placement {
namespace {

/// Whether two devices could trade places: all others are wired to both in the same way.
bool alike(const Wiring::Tables& wiring, int a, int b) {
  for (int other = 0; other < wiring.devices; ++other)
    if (other != a && other != b && wiring.link(a, other) != wiring.link(b, other)) return false;
  return std::ranges::all_of(wiring.numa_devices,
                             [&](DeviceMask set) { return contains(set, a) == contains(set, b); });
}

std::vector<DeviceMask> find_twins(const Wiring::Tables& wiring) {
  std::vector<DeviceMask> twins(static_cast<std::size_t>(wiring.devices));
  for (int a = 0; a < wiring.devices; ++a)
    for (int b = 0; b < wiring.devices; ++b)
      if (alike(wiring, a, b)) twins[static_cast<std::size_t>(a)] |= bit(b);
  return twins;
}

}  // namespace

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
  for (const int node : numa_nodes) {
    auto& set = numa_devices.emplace_back();
    for (int i = 0; i < devices; ++i)
      if (nodes[static_cast<std::size_t>(i)] == node) set |= bit(i);
  }
  twins = find_twins(*this);
  if (devices <= SubsetTables::kMost) subsets.emplace(*this);
}

DeviceMask Wiring::Tables::all() const {
  return devices == kMaxDevices ? ~DeviceMask{0} : bit(devices) - 1;
}

NumaMask Wiring::Tables::numa_of(DeviceMask set) const {
  unsigned mask = 0;
  const auto nodes = std::min<std::size_t>(numa_devices.size(), kNumaBits);
  for (std::size_t i = 0; i < nodes; ++i) mask |= ((numa_devices[i] & set) != 0 ? 1U : 0U) << i;
  return static_cast<NumaMask>(mask);
}

int Wiring::Tables::count_numa_nodes(DeviceMask set) const {
  return static_cast<int>(std::ranges::count_if(
      numa_devices, [&](DeviceMask devices_there) { return (devices_there & set) != 0; }));
}

}  // namespace drover::placement

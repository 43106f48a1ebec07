#pragma once

// How the devices of one node are wired, made ready for exact choices: built once per kind of node, shared by
// all nodes of that kind. Copies share the tables: some 20 ms and 600 KiB for 16 devices,
// microseconds for 8. Immutable; thread safe.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/device.h"

namespace drover::placement {

/// Bit i is device i of the inventory.
using DeviceMask = std::uint64_t;
inline constexpr int kMaxDevices = 64;  ///< of one node

class Wiring {
 public:
  /// `links` is square and symmetric, without negative counts; `numa_nodes` has the device's NUMA node,
  /// absent when unknown. At most kMaxDevices.
  Wiring(const std::vector<std::vector<gpu::Link>>& links, const std::vector<std::optional<int>>& numa_nodes);

  int devices() const;
  const gpu::Link& link(int a, int b) const;
  /// NUMA nodes that have devices, ascending; the i-th is bit i of a NumaMask.
  const std::vector<int>& numa_nodes() const;

  struct Tables;
  /// For choose(), and for whoever lists sets.
  const Tables& tables() const { return *tables_; }

 private:
  std::shared_ptr<const Tables> tables_;
};

}  // namespace drover::placement

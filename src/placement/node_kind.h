#pragma once

// What nodes have in common: the same devices, wired in the same way, with the same NUMA nodes and NICs. A
// cluster keeps each kind once, whatever the number of nodes. Immutable; thread safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "placement/device_choice.h"
#include "placement/node.h"
#include "placement/wiring.h"

namespace drover::placement {

inline constexpr DeviceMask device_bit(int device) {
  return DeviceMask{1} << device;
}
inline constexpr DeviceMask first_devices(int count) {
  return count >= kMaxDevices ? ~DeviceMask{0} : device_bit(count) - 1;
}

struct DeviceKind {
  std::string model;
  std::uint64_t memory_bytes = 0;  ///< 0: unknown
  std::optional<gpu::ComputeCapability> compute_capability;
  std::optional<bool> ecc;
  std::optional<int> numa_node;

  bool operator==(const DeviceKind&) const = default;
};

struct NodeKind {
  int id = 0;                       ///< kinds of one cluster are numbered from 0
  std::vector<DeviceKind> devices;  ///< by index; at most kMaxDevices, the rest is never given
  std::string driver;
  Wiring wiring;
  DeviceMask all = 0;
  DeviceMask near_nic = 0;     ///< devices with a NIC on their NUMA node
  std::vector<gpu::Nic> nics;  ///< by name
  /// [i]: CPUs of bit i of a NumaMask; at most 8, some may be empty. NUMA nodes without devices come last.
  std::vector<std::vector<int>> numa_cpus;
  std::vector<NumaMask> beside;  ///< [i]: bit i, and the NUMA nodes without devices that are left to it
  int nvlinks = 0;               ///< of the best pair

  int count() const { return static_cast<int>(devices.size()); }
};

/// Everything that a NodeKind is made of, in one text: nodes of the same fingerprint are of one kind.
std::string fingerprint(const Node& node);
NodeKind make_node_kind(const Node& node, int id);

/// These NUMA nodes, and those without devices that are left to them.
NumaMask with_beside(const NodeKind& kind, NumaMask numa);
/// CPUs of these NUMA nodes, ascending.
std::vector<int> cpus_of(const NodeKind& kind, NumaMask numa);
/// NUMA nodes that have one of these CPUs (ascending).
NumaMask numa_with_cpus(const NodeKind& kind, const std::vector<int>& cpus);
/// NICs on these NUMA nodes, by name.
std::vector<std::string> nics_of(const NodeKind& kind, NumaMask numa);

}  // namespace drover::placement

#pragma once

// What is free on one node now: what policies look at. A value that is cheap to copy, so that a policy can
// compare a node before and after. It does not own its kind: the cluster does. Amounts may be below zero
// after a node shrank under running work.

#include <bitset>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <vector>

#include "placement/node_kind.h"
#include "placement/parts.h"

namespace drover::placement {

struct DeviceState {
  std::int32_t free_milli = 1000;
  std::int64_t free_memory = 0;  ///< bytes; of a device whose memory is unknown: 0

  bool operator==(const DeviceState&) const = default;
};

/// CPUs that are pinned to exactly these NUMA nodes.
struct PinnedCpus {
  NumaMask numa = 0;
  std::int64_t milli = 0;

  bool operator==(const PinnedCpus&) const = default;
};

/// A MIG instance that is given of a device.
struct TakenPart {
  int device = 0;
  Instance instance;

  auto operator<=>(const TakenPart&) const = default;
};

struct NodeState {
  const NodeKind* kind = nullptr;
  boost::container::small_vector<DeviceState, 8> devices;  ///< as kind->devices
  DeviceMask healthy = 0;                                  ///< devices that may be given: their health
  DeviceMask idle = 0;  ///< devices of which nothing is taken, healthy or not
  std::int64_t milli_cpus = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t free_milli_cpus = 0;
  std::int64_t free_memory = 0;
  boost::container::small_vector<PinnedCpus, 2> pinned;  ///< by numa, without zeros
  std::vector<TakenPart> parts;                          ///< ascending
  int cordon = 0;  ///< 0: takes new work; otherwise 1 to 16, from the words that say why not

  bool operator==(const NodeState&) const = default;

  /// Devices that can be given whole.
  DeviceMask whole() const { return idle & healthy; }
};

/// A part of one device.
struct Part {
  int device = 0;
  std::int32_t milli = 0;
  std::int64_t memory = 0;  ///< bytes
};

/// What its words make NodeState::cordon: the same words the same number.
int cordon_number(const std::string& words);
/// Devices that the inventory calls healthy.
DeviceMask healthy_devices(const Node& node, const NodeKind& kind);
/// All free; healthy and cordoned as the node says.
NodeState make_node_state(const Node& node, const NodeKind& kind);

/// Takes a part; with sign -1 gives it back.
void take(NodeState& state, const Part& part, int sign = 1);
/// The same of a MIG instance.
void take_part(NodeState& state, const TakenPart& part, int sign = 1);
/// Takes CPUs, pinned to NUMA nodes or floating (0), and memory; with sign -1 gives them back.
void take(NodeState& state, NumaMask pinned, std::int64_t milli_cpus, std::int64_t memory, int sign = 1);

/// [numa]: so many CPUs can be pinned there, and what is pinned elsewhere keeps its room. Exact: every set of
/// NUMA nodes has the CPUs that are pinned within it (Hall's theorem). Never true of no NUMA node, nor where
/// CPUs are unknown.
std::bitset<256> cpus_suffice(const NodeState& state, std::int64_t milli_cpus);

}  // namespace drover::placement

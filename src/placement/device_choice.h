#pragma once

// Which devices of one node: the exact optimum. On a node of up to 16 devices it takes microseconds, whatever
// the links, however many are wanted. On a larger one branch and bound finds it, or is given up after some
// ten milliseconds: then the answer is a good set that satisfies, and none only when none was found. Pure;
// deterministic; thread safe.
//
// Larger first, in this order:
//   1. NVLinks over all pairs of the chosen;
//   2. NVLinks of their weakest pair;
//   3. nearness over PCIe over all pairs (none where levels are unknown);
//   4. preferred locality that is met: CPUs on their NUMA nodes only when cpu_affinity says so, then how many
//      of the devices are in `preferred`;
//   5. what is left for the next request: NVLinks, then nearness, over all pairs of `free` that are not
//   chosen
//      (MAPA's preserved bandwidth);
//   6. fewest NUMA nodes; then the lowest indices.
// A requirement (minimum, required affinity) is a condition, not a score.

#include <bitset>
#include <optional>
#include <vector>

#include "placement/request.h"
#include "placement/wiring.h"

namespace drover::placement {

/// So many devices out of `allowed`.
struct ClaimMask {
  int count = 0;
  DeviceMask allowed = 0;
};

/// Bit i is the i-th of Wiring::numa_nodes(). A node beyond the eighth has no bit.
using NumaMask = std::uint8_t;

struct DeviceCriteria {
  std::vector<ClaimMask> claims;      ///< may overlap; each device serves one; at most 16 different masks
  DeviceMask free = 0;                ///< all that are free, also those that no claim allows
  std::vector<DeviceMask> exclusive;  ///< at most one device out of each of these
  std::vector<DeviceMask> together;   ///< any two devices are both in one of these; none: all may be
  Interconnect minimum;               ///< of every pair
  Preference cpu_affinity = Preference::kNone;
  std::bitset<256> cpus_suffice;  ///< [numa]: those NUMA nodes together have the CPUs that are wanted
  DeviceMask preferred = 0;       ///< devices with a NIC near, when one is preferred
};

/// The best set, or none when no set satisfies. Claims for no device at all are met by the empty set.
std::optional<DeviceMask> choose(const Wiring& wiring, const DeviceCriteria& criteria);

NumaMask numa_of(const Wiring& wiring, DeviceMask devices);

/// Whether a pair that is joined so satisfies the minimum: enough NVLinks, or near enough over PCIe. Any
/// NVLink is nearer than PCIe, so one is enough where only a PCIe level is asked for.
bool near_enough(const gpu::Link& link, const Interconnect& minimum);

}  // namespace drover::placement

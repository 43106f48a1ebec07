#pragma once

// What one container is given: so many GPUs of a kind, CPUs, memory, and what they must be like. Values; the
// same types are what people write, what the journal keeps and what placement decides on.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/device.h"

namespace drover::workload {

/// What a GPU must be like; every field that is set must hold.
struct DeviceFilter {
  /// Any of these: a whole word, or several, of the model's name, in any case: "a100" is in
  /// "NVIDIA A100-SXM4-80GB", "A10" is not.
  std::vector<std::string> models;
  std::uint64_t min_memory_bytes = 0;
  std::optional<gpu::ComputeCapability> min_compute_capability;
  std::optional<bool> ecc;
  std::string min_driver;  ///< "535.104"; compared number by number

  bool operator==(const DeviceFilter&) const = default;
};

/// So many GPUs of one kind: "2 × A100" and "1 × T4" are two claims of one request.
struct DeviceClaim {
  int count = 0;
  DeviceFilter filter;

  bool operator==(const DeviceClaim&) const = default;
};

/// How much of each GPU. By memory when `memory_bytes` is set, else in thousandths; 1000 is the whole.
/// A share by thousandths holds as much of the memory, rounded down; a share by memory holds as many
/// thousandths, rounded down. On one GPU neither sum may pass what it has, so both are exact.
struct Share {
  int milli = 1000;
  std::uint64_t memory_bytes = 0;

  bool whole() const { return memory_bytes == 0 && milli == 1000; }
  bool operator==(const Share&) const = default;
};

/// Less memory of a GPU nothing is held to: a program's context alone takes most of it.
inline constexpr std::uint64_t kMinGuarded = 1ULL << 30;

/// Both amounts that a share holds of a GPU with so much memory; nothing of one with less memory than it asks
/// for.
Share held_of(const Share& share, std::uint64_t memory_bytes);

/// What is to hold a task to its shares, or how those of a group share.
enum class ShareBy {
  kAuto,    ///< the strongest that there is
  kMig,     ///< the hardware: `part` is the smallest MIG profile that holds the share
  kKernel,  ///< the driver itself, by its limit of the container's control group
  kMps,     ///< nothing: it has whole GPUs, which the tasks of its group share by NVIDIA's MPS
  kLimits,  ///< the guard's libraries, and a referee
  kNone,    ///< nothing: they are counted
};

/// What a MIG instance of this profile counts as, by the slices that its name begins with: "3g.20gb" has 3 of
/// 7. nullopt when it is no profile's name.
std::optional<Share> share_of_part(std::string_view profile);

/// The weakest pair of the chosen GPUs is at least this near: so many NVLinks, or a PCIe level.
struct Interconnect {
  int min_nvlinks = 0;
  gpu::PcieLevel max_pcie =
      gpu::PcieLevel::kUnknown;  ///< kUnknown: any; ignored for pairs with enough NVLinks

  bool asks() const { return min_nvlinks > 0 || max_pcie != gpu::PcieLevel::kUnknown; }
  bool operator==(const Interconnect&) const = default;
};

/// How much a preference weighs.
enum class Preference {
  kNone,
  kPrefer,   ///< decides between choices that are equal otherwise
  kRequire,  ///< no placement without it
};

/// The node has this attribute with one of these values.
struct AttributeConstraint {
  std::string name;
  std::vector<std::string> any_of;

  bool operator==(const AttributeConstraint&) const = default;
};

/// All GPUs of one container have compute capabilities out of one of these sets. What a task's program needs
/// beside what its owner asks for: nobody writes it, and it is not kept.
struct CapabilitySets {
  std::vector<std::vector<gpu::ComputeCapability>> sets;  ///< none: any GPUs will do
  std::string reason;                                     ///< why, as a clause

  bool operator==(const CapabilitySets&) const = default;
};

/// On which nodes work may run at all, by rules that are none of resources, such as taints of a cluster.
/// Nobody writes it, and it is not kept.
struct Eligibility {
  std::vector<std::string> reasons;                         ///< clauses: "had untolerated taint(s)"
  std::map<std::string, std::size_t, std::less<>> refused;  ///< by the node's name: which of the reasons

  /// nullptr when it may.
  const std::size_t* why_not(std::string_view node) const {
    const auto found = refused.find(node);
    return found == refused.end() ? nullptr : &found->second;
  }
};

struct Resources {
  std::vector<DeviceClaim> gpus;  ///< none: CPU-only
  bool different_models = false;  ///< no two of its GPUs are of one model
  CapabilitySets capabilities;
  Share share;
  ShareBy share_by = ShareBy::kAuto;
  bool insists_on_share() const { return share_by == ShareBy::kKernel || share_by == ShareBy::kLimits; }
  /// Whether MIG instances stand for its GPUs, though it may not be known yet of which profile.
  bool wants_parts() const { return !part.empty() || share_by == ShareBy::kMig; }
  bool by_mps() const { return share_by == ShareBy::kMps; }
  /// "1g.10gb": instead of each GPU a MIG instance of this profile, several of which may be of one GPU. Then
  /// `share` is what one counts as: share_of_part(). "" is none.
  std::string part;
  Interconnect interconnect;                      ///< a minimum; without one the best is taken all the same
  Preference cpu_affinity = Preference::kPrefer;  ///< CPUs of the NUMA nodes of its GPUs
  Preference nic = Preference::kNone;             ///< a NIC on the NUMA node of its GPUs
  std::int64_t milli_cpus = 0;                    ///< thousandths of a CPU; also the weight under contention
  std::uint64_t memory_bytes = 0;
  std::vector<AttributeConstraint> attributes;
  std::shared_ptr<const Eligibility> eligibility;  ///< nullptr: every node. Compared by identity
  /// Containers of one group share one set of GPUs: the first that is placed chooses them, the others
  /// get the same ones, on the same node, and add only their CPUs and memory. "" is no group.
  std::string group;

  int gpu_count() const;  ///< sum of the claims; at most INT_MAX, whatever they say

  bool operator==(const Resources&) const = default;
};

/// How the members of a gang lie on the nodes.
enum class Arrangement {
  kPack,    ///< on as few nodes as can be
  kSpread,  ///< no two on one node; refused when there are too few nodes
  kAny,     ///< wherever the cluster's policy puts them
};

}  // namespace drover::workload

#pragma once

// What placement answers: where, or why not. Values.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gpu/mig_facts.h"
#include "gpu/share_tier.h"

namespace drover::placement {

/// A MIG instance that is given, and nothing else of its GPU.
struct MigGrant {
  std::string profile;  ///< by its name
  unsigned profile_id = 0;
  gpu::MigPlacement placement;
  std::string uuid = {};  ///< "MIG-…"; "" until it was made

  bool operator==(const MigGrant&) const = default;
};

/// A GPU, or a part of one.
struct Grant {
  std::string uuid;
  int milli = 1000;                  ///< of 1000
  std::uint64_t memory_bytes = 0;    ///< of the GPU's memory; 0 when its size is unknown
  std::optional<MigGrant> mig = {};  ///< the part of it, when it is in MIG mode

  bool operator==(const Grant&) const = default;
};

/// How the holder of a grant is kept to it; "" of a whole GPU, which nobody else has. `started`: the tier
/// that its task was started with, "" before and where nothing holds it. A part's is known from its place.
inline std::string_view tier_of(const Grant& grant, std::string_view started) {
  if (grant.mig) return gpu::kHard;
  if (grant.milli >= 1000) return "";
  return started.empty() ? gpu::kCounted : started;
}

struct Decision {
  std::string node;
  std::vector<Grant> gpus;        ///< in the order of the node's indices
  std::vector<int> cpus;          ///< those it is pinned to, ascending; empty: it floats
  std::vector<std::string> nics;  ///< of the same NUMA nodes, when the request wished for one

  bool operator==(const Decision&) const = default;
};

/// In what something was short.
enum class Dimension {
  kCordon,
  kEligibility,  ///< Request::eligibility
  kAttribute,
  kGpuCount,  ///< the node has too few GPUs at all
  kModel,
  kGpuMemory,
  kComputeCapability,
  kEcc,
  kDriver,
  kUnhealthy,  ///< GPUs that nobody gets now: their health
  kFreeGpus,
  kShare,         ///< no GPU has so much left
  kParts,         ///< no GPU in MIG mode can be cut so, or has room for it
  kCapabilities,  ///< no set of GPUs of which each is of one of the capability sets
  kInterconnect,
  kDifferentModels,
  kCpuAffinity,
  kNic,
  kCpus,
  kMemory,
  kGroup,  ///< the GPUs of its group are on a node that has no room
  kGang,   ///< some members fit, not all at once
  kQuota,
  kQueueLimit,
  kOrder,       ///< it stands behind others
  kHeld,        ///< it may not be planned yet, for what placement knows nothing of
  kPreemption,  ///< it waits for the end of work that makes room for it
};

/// One reason. `text` is a clause without the count of nodes, in the singular: "has no model A100". About the
/// only node there is, it is a sentence: "2 GPUs are wanted and 1 of 2 is free".
struct Reason {
  Dimension dimension{};
  int nodes = 0;  ///< how many nodes it is true of; 0 when it is not about nodes
  std::string text;

  bool operator==(const Reason&) const = default;
};

/// Each node is counted once, under the first dimension (in the order of the enum) that keeps the request
/// off it. So the counts sum up to `nodes`. Of a single node, everything that is short is listed.
struct Reasons {
  int nodes = 0;  ///< that were looked at
  std::vector<Reason> list;
  std::vector<std::string>
      remedies;  ///< what would make it fit: "ask for 1 GPU", "wait for 2 GPUs of node-3"

  bool operator==(const Reasons&) const = default;
};

/// "4 nodes: 2 have no model A100, 1 lacks …, 1 is cordoned"; the reasons that are not about nodes follow,
/// one entry each. On a cluster of one node the count is left out. Never empty for a Reasons that is not.
std::vector<std::string> describe(const Reasons& reasons);

/// Of one reason that is about nodes: "3 nodes lack 2 free GPUs", "1 node has no model A100"; a sentence
/// about the only node there is stays as it is.
std::string describe_nodes(const Reason& reason, int of_nodes);

using Answer = std::variant<Decision, Reasons>;

}  // namespace drover::placement

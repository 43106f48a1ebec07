#pragma once

// What a ResourceClaim's own status says of its devices that are parts of GPUs: what keeps the claim's pods
// to them (gpu/share_tier.h). An entry of `status.devices` is its driver's and its pool's; those of others
// are left alone. Pure.
//
//   {"driver": "gpu.nvidia.com", "pool": "node1", "device": "gpu-3", "shareID": "…",
//    "data": {"tier": "guarded", "heldBy": "guard", "memoryBytes": 8589934592, "computePercent": 20},
//    "conditions": [{"type": "Ready", "status": "True", …}, {"type": "ShareEnforced", "status": "True", …}]}

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/units.h"
#include "kube/dra/book.h"

namespace drover::kube::dra {

/// Whose entries they are.
struct StatusOwner {
  std::string driver;
  std::string pool;
};

/// The entries of a claim that is prepared, as an array; conditions have no times yet. None of whole GPUs,
/// which nobody else has, nor of an administrator's.
nlohmann::json device_statuses(const PreparedClaim& claim, const std::map<std::string, NodeGpu>& gpus,
                               const StatusOwner& owner);

/// The claim's status with which these entries become those of the owner, conditions that are new dated
/// `now`; none when the claim, as the API server has it, says them already, and no others.
std::optional<nlohmann::json> status_change(const nlohmann::json& claim, nlohmann::json entries,
                                            const StatusOwner& owner, TimePoint now);

/// By whom a status is written: each driver of each node by itself.
std::string status_manager(const StatusOwner& owner);

/// The weakest tier of a claim's devices, as any driver of ours has written it: "" while none has.
std::string tier_in_status(const nlohmann::json& claim);

}  // namespace drover::kube::dra

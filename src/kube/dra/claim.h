#pragma once

// A ResourceClaim as the API server gives it (v1 and v1beta1 have the same status): what of this node it was
// allocated. What is read comes from the API server and yet is checked. Pure.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/dra/claim_config.h"

namespace drover::kube::dra {

/// Of a claim: "true" where every container that has it has all of it and no other GPUs, so that it can be
/// told which it has. Who says so and lies is told of too few.
inline constexpr const char* kSoleAnnotation = "drover.dev/sole-gpus";
bool is_sole(const nlohmann::json& claim);

/// How the kubelet names a claim.
struct ClaimReference {
  std::string namespace_name;
  std::string name;
  std::string uid;

  bool operator==(const ClaimReference&) const = default;
};
/// "'team-a/training'"
std::string to_string(const ClaimReference& claim);

/// One device of a claim.
struct AllocatedDevice {
  std::string request;   ///< without the alternative of a list that was chosen
  std::string device;    ///< "gpu-3"
  std::string share_id;  ///< of one allocation of several of a device; "" for a device as a whole
  std::optional<std::int64_t> memory;  ///< bytes, of a device that is shared by memory
  std::optional<std::int64_t> share;   ///< thousandths, of a device that is shared by them
  bool admin = false;                  ///< beside whoever has it: to look after it
  bool tolerant = false;               ///< of what is wrong with it; not kept
  SharingConfig sharing;               ///< not kept

  /// Whether others may have the device too.
  bool shared() const { return memory.has_value() || share.has_value(); }
  bool operator==(const AllocatedDevice&) const = default;
};

/// The devices that `driver` gives to the claim from the pool `pool`. kConflict for another claim of the same
/// name, and for one that is not allocated or reserved now; kInvalid for a configuration or a device that
/// cannot be meant.
Result<std::vector<AllocatedDevice>> allocated_devices(const nlohmann::json& claim,
                                                       const ClaimReference& reference,
                                                       const std::string& driver, const std::string& pool);

}  // namespace drover::kube::dra

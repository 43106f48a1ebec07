#pragma once

// What a scheduler has to know of the claims of devices, and of the classes and rules beside them
// (resource.k8s.io/v1). Claims that were made from one template share what they ask for once they stand in
// DevicePools. Pure.

#include <compare>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/scheduler/claims/slice.h"
#include "kube/scheduler/pod.h"

namespace drover::kube::scheduler {

/// For a driver, which alone understands it.
struct DeviceConfig {
  std::string driver;
  std::string parameters;  ///< as JSON

  auto operator<=>(const DeviceConfig&) const = default;
};

/// Devices of one class: so many, or all that there are.
struct DeviceWish {
  std::string name = {};  ///< of one of several; "": of the request
  std::string device_class = {};
  std::vector<std::string> selectors = {};
  bool all = false;
  std::int64_t count = 1;
  bool admin = false;
  std::vector<Toleration> tolerations = {};
  std::string tolerations_json = {};  ///< as they were written; "": none
  Amounts capacity = {};

  auto operator<=>(const DeviceWish&) const = default;
};

/// The first of its wishes that can be had.
struct DeviceRequest {
  std::string name;
  std::vector<DeviceWish> wishes;

  auto operator<=>(const DeviceRequest&) const = default;
};
/// "gpu", or "gpu/large" of one of several.
std::string full_name(const DeviceRequest& request, const DeviceWish& wish);

/// Of an attribute that devices have in common, or that each of them has for itself.
struct AttributeConstraint {
  std::set<std::string, std::less<>> requests;  ///< none: all of the claim
  std::string attribute;
  bool distinct = false;

  auto operator<=>(const AttributeConstraint&) const = default;
};

struct ClaimConfig {
  std::vector<std::string> requests;  ///< none: all of the claim
  DeviceConfig config;

  auto operator<=>(const ClaimConfig&) const = default;
};

struct ClaimSpec {
  std::vector<DeviceRequest> requests = {};
  std::vector<AttributeConstraint> constraints = {};
  std::vector<ClaimConfig> configs = {};
  std::string unsupported = {};  ///< what it uses that we do not decide on; "": nothing

  auto operator<=>(const ClaimSpec&) const = default;
};
/// Of a claim or of a template: an object with `devices`.
ClaimSpec read_claim_spec(FieldReader& reader, const nlohmann::json& spec);

struct AllocatedDevice {
  std::string request = {};  ///< full_name()
  DeviceId id = {};
  bool admin = false;
  std::string tolerations_json = {};
  std::string share_id = {};  ///< "": the device is for the claim alone
  Amounts consumed = {};
};

struct AllocatedConfig {
  bool from_class = false;
  std::vector<std::string> requests = {};  ///< none: all of the claim
  DeviceConfig config = {};
};

/// What stands in a claim's `status.allocation`.
struct ClaimAllocation {
  std::vector<AllocatedDevice> devices = {};
  std::vector<AllocatedConfig> configs = {};  ///< not read
  std::optional<NodeTerms> nodes = {};        ///< nullopt: every node
};
/// As an API server takes it; `time` is "2026-01-02T03:04:05Z", or "" for none.
nlohmann::json to_json(const ClaimAllocation& allocation, const std::string& time);
/// Whether its devices can be had on that node.
bool is_available_on(const ClaimAllocation& allocation, const Node& node);

/// Who uses a claim.
struct ClaimConsumer {
  std::string resource;  ///< "pods"
  std::string name;
  std::string uid;
};

struct ResourceClaim {
  std::string uid = {};
  std::string name_space = {};
  std::string name = {};
  std::string owner_uid = {};           ///< of its controller
  bool for_extended_resources = false;  ///< a scheduler made it for a pod's resources
  bool terminating = false;
  std::shared_ptr<const ClaimSpec> spec = {};
  std::shared_ptr<const ClaimAllocation> allocation = {};  ///< nullptr: none
  std::vector<ClaimConsumer> reserved_for = {};
  /// The JSON object of one that was not made by a scheduler and has no allocation: to be written without
  /// being asked for again.
  std::shared_ptr<const std::string> as_read = {};
};
/// kInvalid for what no API server gives out.
Result<ResourceClaim> read_resource_claim(const nlohmann::json& claim);
bool is_reserved_for(const ResourceClaim& claim, std::string_view uid);

struct DeviceClass {
  std::string name = {};
  std::string created = {};
  std::vector<std::string> selectors = {};
  std::vector<DeviceConfig> configs = {};
  std::string extended_resource = {};
  std::string unsupported = {};
};
Result<DeviceClass> read_device_class(const nlohmann::json& device_class);

/// A taint that somebody put on devices, beside what their drivers say.
struct DeviceTaintRule {
  std::string name = {};
  bool selects = false;                                            ///< otherwise it is of no device
  std::optional<std::string> driver = {}, pool = {}, device = {};  ///< nullopt: each of them
  Taint taint = {};
};
Result<DeviceTaintRule> read_device_taint_rule(const nlohmann::json& rule);

}  // namespace drover::kube::scheduler

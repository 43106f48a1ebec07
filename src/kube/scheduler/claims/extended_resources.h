#pragma once

// Resources of pods ("nvidia.com/gpu") that a node gives by claim, since a class of devices stands for them:
// the one claim that a scheduler makes for them, by the rules of kube-scheduler's plugin DynamicResources.
// Pure.

#include <compare>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/scheduler/claims/device_pools.h"
#include "kube/scheduler/resources.h"

namespace drover::kube::scheduler {

/// What one container of a pod asks for.
struct ContainerResources {
  std::string name = {};
  bool passes = false;                  ///< it ends before the pod's other containers begin
  std::vector<std::string> names = {};  ///< of all its resources, sorted
  std::map<std::string, std::int64_t, std::less<>> amounts = {};  ///< of those that are whole numbers

  auto operator<=>(const ContainerResources&) const = default;
};
/// Its init containers and then the others.
Result<std::vector<ContainerResources>> read_container_resources(const nlohmann::json& pod);

using ResourceNames = std::set<std::string, std::less<>>;
/// Which of them a node gives by claim: a class stands for them, and the node itself offers none.
ResourceNames resources_by_claim(const Resources& requests, const Node& node, const DevicePools& pools);

/// Which request of the claim gives a container its resource.
struct RequestMapping {
  std::string container;
  std::string resource;
  std::string request;
};

struct ExtendedResourceClaim {
  ClaimSpec spec = {};
  std::vector<RequestMapping> mappings = {};
};
/// For these of a pod's resources.
ExtendedResourceClaim extended_resource_claim(const std::vector<ContainerResources>& containers,
                                              const ResourceNames& resources, const DevicePools& pools);

/// The object that an API server is to create: its name comes from there. With the finalizer without which
/// its devices would not be freed.
nlohmann::json to_json(const ExtendedResourceClaim& claim, const std::string& name_space,
                       const std::string& pod_name, const std::string& pod_uid);
/// What stands in the pod's `status.extendedResourceClaimStatus` then.
nlohmann::json claim_status(const ExtendedResourceClaim& claim, const std::string& claim_name);

}  // namespace drover::kube::scheduler

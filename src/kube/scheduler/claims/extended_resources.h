#pragma once

// Resources of pods ("nvidia.com/gpu") that a node gives by claim, since a class of devices stands for them:
// the one claim that a scheduler makes for them, by the rules of kube-scheduler's plugin DynamicResources.
// Pure.

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "kube/scheduler/claims/device_pools.h"
#include "kube/scheduler/resources.h"

namespace drover::kube::scheduler {

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

/// Whether a claim that was made so gives the pod this resource.
bool gives(const ClaimSpec& spec, const std::vector<ContainerResources>& containers,
           const std::string& resource);

/// The object that an API server is to create: its name comes from there. With the finalizer without which
/// its devices would not be freed.
nlohmann::json to_json(const ExtendedResourceClaim& claim, const std::string& name_space,
                       const std::string& pod_name, const std::string& pod_uid);
/// What stands in the pod's `status.extendedResourceClaimStatus` then.
nlohmann::json claim_status(const ExtendedResourceClaim& claim, const std::string& claim_name);

}  // namespace drover::kube::scheduler

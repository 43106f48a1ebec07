#pragma once

// Gives the devices of a node to the claims of a pod, by the rules of Kubernetes' allocator
// (k8s.io/dynamic-resource-allocation/structured): what it finds a way for, this does, and nothing else.
// Pure.

#include <cstddef>
#include <string>
#include <vector>

#include "kube/scheduler/claims/device_pools.h"

namespace drover::kube::scheduler {

struct AllocateOptions {
  /// Devices that are taken rather than others, in that order: all of them where that is enough. Whether
  /// there is a way at all, and which of a request's alternatives is taken, does not depend on them.
  std::vector<DeviceId> first = {};
  /// Whether the namespace lets claims have devices that others have:
  /// `resource.kubernetes.io/admin-access: "true"`.
  bool admin_access = false;
  std::size_t most_tries = 20'000;
};

struct Allocated {
  std::vector<ClaimAllocation> allocations = {};  ///< one for each claim
  std::string refusal = {};                       ///< why this node does not do; "": it does

  bool fits() const { return refusal.empty(); }
};

/// For claims that have no allocation. An error is one on every node: kInvalid for what the claims or their
/// classes say, a selector that fails among it, kNotFound for a class, kPermissionDenied for admin access,
/// kUnsupported, by name, for what we do not decide on.
///
/// Shares are named after the claim's uid. A claim that is not created yet needs one that no other has.
Result<Allocated> allocate(const DevicePools& pools, const Node& node,
                           const std::vector<const ResourceClaim*>& claims,
                           const AllocateOptions& options = {});

/// What a wish of a request could be given on a node if nothing else was asked for.
struct Eligible {
  std::string request = {};  ///< full_name()
  bool all = false;
  std::size_t count = 0;  ///< how many of them it wants
  std::vector<DeviceId> devices = {};
};
/// For each claim, each wish of each request.
Result<std::vector<std::vector<Eligible>>> eligible_devices(const DevicePools& pools, const Node& node,
                                                            const std::vector<const ResourceClaim*>& claims,
                                                            const AllocateOptions& options = {});

}  // namespace drover::kube::scheduler

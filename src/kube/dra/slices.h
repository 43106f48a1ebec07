#pragma once

// ResourceSlices: how the node's devices stand in the API server, and by which changes they get there. Pure.
//
// The scheduler takes the slices with the highest generation of a pool, and nothing of the pool while there
// are fewer of them than each says there should be (resource.k8s.io, ResourcePool). So one slice may change
// in its place, and whatever touches more gets a generation of its own: at no moment does anybody see half of
// the old and half of the new devices.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover::kube::dra {

enum class ApiVersion { kV1, kV1beta1 };

struct SliceOwner {
  ApiVersion version = ApiVersion::kV1;
  std::string driver;    ///< "gpu.nvidia.com"
  std::string node;      ///< its name; the pool's too
  std::string node_uid;  ///< of the Node: with it the slices go; "" for no owner
};

/// What a pool has: devices, and the counters that some of them consume.
struct PoolContent {
  std::vector<nlohmann::json> devices;
  std::vector<nlohmann::json> counter_sets;
};

/// What the API server takes in devices, and keeps of them.
struct ServerKnows {
  bool counters = true;
  bool taints = true;
  bool informational_taints = false;  ///< with the effect None
};

/// Without what the server does not know; and without devices that it would then take for others than they
/// are: the scheduler would choose instances that overlap, and GPUs that nobody is to have.
PoolContent fitted(PoolContent content, const ServerKnows& server);

/// Whole objects, as many as it takes (64 devices each, or 8 counter sets, which Kubernetes wants in slices
/// of their own since 1.35); without devices one slice says so. Their generation is 0, see plan_slices().
std::vector<nlohmann::json> slices_of(const SliceOwner& owner, const PoolContent& content);

/// In this order: update, create, remove.
struct SliceChanges {
  std::vector<nlohmann::json> update;  ///< with the resourceVersion that they were seen with
  std::vector<nlohmann::json> create;
  std::vector<std::string> remove;  ///< names

  bool empty() const;
};

/// The fewest changes that make `there` (all slices of the driver on the node) into `wanted`.
SliceChanges plan_slices(const std::vector<nlohmann::json>& there, const std::vector<nlohmann::json>& wanted);

/// Whether a slice says what is wanted: quantities are compared by value, the generation is not looked at.
bool says_the_same(const nlohmann::json& slice, const nlohmann::json& wanted);

/// kInvalid when no slices could be named after them.
Status check_names(const std::string& driver, const std::string& node);

}  // namespace drover::kube::dra

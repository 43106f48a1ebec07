#pragma once

// What a pod asks a node for and what a node has, as kube-scheduler counts it. Pure.

#include <compare>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kube/client/server_version.h"
#include "kube/scheduler/fields.h"

namespace drover::kube::scheduler {

struct Resources {
  std::int64_t cpu = 0;                                          ///< thousandths
  std::int64_t memory = 0;                                       ///< bytes
  std::int64_t storage = 0;                                      ///< bytes of `ephemeral-storage`
  std::map<std::string, std::int64_t, std::less<>> others = {};  ///< extended resources, huge pages

  auto operator<=>(const Resources&) const = default;
};
/// Rounded up. Names that mean nothing to the scheduler are left out.
Resources whole(const Quantities& quantities);

/// What one container of a pod asks for.
struct ContainerResources {
  std::string name = {};
  bool passes = false;                  ///< it ends before the pod's other containers begin
  std::vector<std::string> names = {};  ///< of all its resources, sorted
  std::map<std::string, std::int64_t, std::less<>> amounts = {};  ///< of those that are whole numbers

  auto operator<=>(const ContainerResources&) const = default;
};
/// Its init containers and then the others.
std::vector<ContainerResources> read_container_resources(FieldReader& reader, const nlohmann::json& pod);

/// What overflows stays at the end of the range.
void add(Resources& sum, const Resources& resources);

/// Whether the scheduler counts a resource of that name beside cpu, memory, ephemeral-storage and pods.
bool is_counted(std::string_view name);

/// What a pod asks for: all its containers and its sidecars, or the most demanding of its init containers
/// with the sidecars before it; what is said for the whole pod instead, and the overhead of its runtime
/// class. Once a node has it, also what it still has, or has been allotted, while its resources are changed:
/// that is counted as the cluster's version does, which is nullptr for a pod that waits.
/// (k8s.io/component-helpers/resource, PodRequests)
Resources read_requests(FieldReader& reader, const nlohmann::json& pod, const ServerVersion* assigned);

}  // namespace drover::kube::scheduler

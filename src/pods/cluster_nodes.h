#pragma once

// The nodes of a cluster as places that placement knows: for what is looked at and refused before its
// scheduler decides. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "placement/cluster.h"
#include "placement/node.h"

namespace drover::pods {

/// Of a Node object: what it can give out, its GPUs as its agent describes them, and its labels as
/// attributes. Where no agent does, its GPUs are only counted. What somebody else has, or the node does not
/// offer, is withheld by `cordoned`: it is not unhealthy.
Result<placement::Node> placement_node(const nlohmann::json& node, const std::string& gpu_resource);

/// What a pod has of its node, as its scheduler counts it, but for GPUs that it has by a claim. Nothing when
/// it has no node, or has ended.
struct PodUse {
  std::string node;
  placement::Free amounts;

  bool operator==(const PodUse&) const = default;
};
Result<PodUse> read_use(const nlohmann::json& pod, const std::string& gpu_resource);

}  // namespace drover::pods

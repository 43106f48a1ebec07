#pragma once

// What a scheduler has to know of a node, out of the API server's objects: a Node, and the CSINode of the
// same name. Pure.

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/scheduler/labels.h"
#include "kube/scheduler/resources.h"

namespace drover::kube::scheduler {

struct Taint {
  std::string key;
  std::string value;
  std::string effect;  ///< "NoSchedule", "NoExecute", "PreferNoSchedule"

  auto operator<=>(const Taint&) const = default;
};
using Taints = std::vector<Taint>;

struct Node {
  std::string name = {};
  Labels labels = {};
  std::shared_ptr<const Taints> taints = {};
  bool unschedulable = false;
  bool held =
      false;  ///< for pods of the scheduler that asks (NodeHolds): its own taint is not among the others
  Resources allocatable = {};
  std::int64_t most_pods = 0;
  std::set<std::string, std::less<>> features = {};  ///< that it declares
};

/// kInvalid for what no API server gives out.
Result<Node> read_node(const nlohmann::json& node);

/// Which CSI drivers a node has, and whether it can have only so many of their volumes.
struct CsiDrivers {
  std::string node_name;
  std::map<std::string, bool, std::less<>> limited;  ///< by driver
};
Result<CsiDrivers> read_csi_node(const nlohmann::json& csi_node);

}  // namespace drover::kube::scheduler

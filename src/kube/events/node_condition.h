#pragma once

// Conditions of a node that are ours, beside those of the kubelet. Block; need the rights to get nodes and to
// patch nodes/status.

#include <string>

#include "base/units.h"
#include "kube/client/api.h"

namespace drover::kube {

struct NodeCondition {
  std::string type;     ///< "DroverGpusHealthy"
  std::string status;   ///< "True", "False" or "Unknown"
  std::string reason;   ///< for programs, one word: "XidError"
  std::string message;  ///< for people, a sentence

  bool operator==(const NodeCondition&) const = default;
};

/// Writes it, unless the node has it already.
Status set_node_condition(Api& api, const std::string& node, const NodeCondition& condition, TimePoint now);
/// Fine when the node has none of this type.
Status remove_node_condition(Api& api, const std::string& node, const std::string& type);

}  // namespace drover::kube

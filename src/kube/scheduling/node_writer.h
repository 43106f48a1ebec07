#pragma once

// What a scheduler writes into Nodes. Blocks for as long as the API server takes.

#include <string>

#include "base/result.h"
#include "kube/client/api.h"

namespace drover::kube {

/// Keeps pods of other schedulers than `scheduler` off the node, or does so no more: NodeHolds. kNotFound
/// when there is no such node.
Status hold_node(Api& api, const std::string& node, const std::string& scheduler, bool held);

}  // namespace drover::kube

#pragma once

// When Drover is uninstalled from a cluster: takes back what the Nodes say of their GPUs, and of who holds
// them, which stays while the program only stops. ResourceSlices are the kubelet's to take away.

#include "base/result.h"
#include "kube/client/api.h"

namespace drover::kube {

/// Removes our labels, taints and conditions from all Nodes, and nobody else's; returns from how many.
/// Blocks; may be called again after an error. Needs the rights to list, get and patch nodes, and to patch
/// nodes/status.
Result<int> withdraw(Api& api);

}  // namespace drover::kube

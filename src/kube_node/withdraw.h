#pragma once

// `drover kube withdraw`: puts the parts together that take Drover's word back from a cluster's Nodes.

#include <string>

#include "base/result.h"

namespace drover {

/// From how many Nodes. `kubeconfig`: "" for $KUBECONFIG, or the ServiceAccount of the pod.
Result<int> run_kube_withdraw(const std::string& kubeconfig);

}  // namespace drover

#pragma once

// Whose shares of GPUs are watched on a node of a cluster: those of claims, and of each the containers that
// have it. Pure.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "kube/dra/preparer.h"
#include "kube/kubelet/container_runtime.h"
#include "kube/kubelet/pod_resources.h"
#include "kube/usage/attribution.h"
#include "share/watch.h"

namespace drover::kube {

/// Allowances are named by the claims' uids; what the watch calls tasks are ids of containers that run. Not
/// watched is who is in a container that has two claims of one GPU, neither of which is guarded: nobody knows
/// which of them it uses.
share::Shares shares_of(const gpu::Inventory& inventory, const std::vector<dra::ClaimShare>& claims,
                        const ClaimNames& names, const std::vector<ContainerUse>& uses,
                        const std::vector<RunningContainer>& running);

}  // namespace drover::kube

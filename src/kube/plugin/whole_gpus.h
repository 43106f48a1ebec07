#pragma once

// Which GPUs a node gives out whole: what a scheduler may choose among. Pure.

#include <vector>

#include "gpu/device.h"
#include "kube/plugin/resources.h"

namespace drover::kube {

/// Those that one of these resources has as a whole. One that the kubelet gives to nobody now under the first
/// such name is withheld, so that as many are not as the node has allocatable. A GPU in MIG mode is not among
/// them, nor is one that is only shared: who counts on either may have no more than a part of it.
gpu::Inventory whole_gpus(const gpu::Inventory& inventory, const std::vector<OfferedResource>& offers);

}  // namespace drover::kube

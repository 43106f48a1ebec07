#pragma once

// What is wrong on a node, each in a sentence that says what follows from it. Pure.

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/dra/driver.h"
#include "kube/kubelet/container_runtime.h"
#include "kube/kubelet/pod_resources.h"
#include "kube_node/offer.h"

namespace drover {

/// What a runtime without CDI means for the node.
Status fitness_of(const kube::ContainerRuntime& runtime);

/// Whether the kubelet knows of all devices that its containers have.
Status check_nothing_is_forgotten(const std::vector<kube::ContainerUse>& containers);

/// Why GPUs are given to nobody though they are healthy, of so many in all.
Status check_given(const MissingFiles& missing, std::size_t gpus);

/// Why the driver serves no claims; "" when it does.
std::string why_not_served(const kube::dra::DriverState& driver);

}  // namespace drover

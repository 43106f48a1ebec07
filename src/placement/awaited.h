#pragma once

// What has to happen before something fits. Pure.

#include <string>

#include "placement/gang.h"

namespace drover::placement {

/// Of a gang that does not fit now: "uncordon node-7" when that alone is enough; else, of a single container
/// that asks for whole GPUs of one kind, the node where the fewest have to come free: "wait for 2 GPUs of
/// node-3". Empty when neither can be said, and on more than 100 nodes, because it tries each.
std::string awaited(const Cluster& cluster, const Gang& gang);

}  // namespace drover::placement

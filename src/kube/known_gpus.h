#pragma once

// GPUs that a node had stay known when the driver no longer lists them: they are unhealthy then, and not just
// gone without a word. Pure.

#include "gpu/device.h"

namespace drover::kube {

/// What the driver lists `now`, with what it listed `before` and lists no longer, as unhealthy. Indices are
/// those of before as long as nothing new is there; with something new, only what is listed now counts.
gpu::Inventory keep_known(const gpu::Inventory& before, gpu::Inventory now);

}  // namespace drover::kube

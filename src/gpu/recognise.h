#pragma once

// Memory between two discoveries of the same machine. A GPU that is lost tells nothing any more, not even its
// UUID, but it is still the GPU that somebody was given. Pure.

#include "gpu/device.h"

namespace drover::gpu {

/// Whether its name is its own, and not one that discovery made up for it.
bool tells_uuid(const Device& device);

/// `now`, where every GPU that does not tell its UUID is what `before` had at its place: the same PCI address
/// or, without one, the same index among as many GPUs. Why it is unhealthy, and its problems, stay as they
/// are now.
Inventory recognise(Inventory now, const Inventory& before);

}  // namespace drover::gpu

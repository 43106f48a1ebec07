#pragma once

// Which MIG profile a share of a GPU means where the hardware is to hold it (share_by mig). Pure;
// deterministic.

#include <string>

#include "base/result.h"
#include "placement/node.h"
#include "placement/request.h"

namespace drover::placement {

/// The name of the smallest profile of the node's GPUs in MIG mode, as far as the request's filters allow
/// them, that has at least the request's share: so much memory, or of the slices of memory and
/// of those of multiprocessors at least that part of its GPU's. Smallest is least memory, then fewest slices,
/// then the first name. kInvalid names the largest that there is.
Result<std::string> profile_with_share(const Node& node, const Request& request);

}  // namespace drover::placement

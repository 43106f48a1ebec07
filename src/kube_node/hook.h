#pragma once

// Puts `drover-cdi-hook` where a node's OCI runtime finds it, also when this program lives in a container:
// the CDI specifications of a node name it.

#include <string>

#include "base/result.h"

namespace drover {

/// `state` has the same path on the node. An older one is replaced, whole, while runtimes may run it. Returns
/// its path. kUnsupported where nothing may be run from that folder.
Result<std::string> place_cdi_hook(const std::string& state);

}  // namespace drover

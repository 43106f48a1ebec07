#pragma once

// What a container on a node gets so that it is held to its share of GPUs: by a claim, or by a replica of the
// device plugin's. Pure.

#include <string>
#include <vector>

#include "cdi/specification.h"

namespace drover::kube {

/// How containers are edited for the driver with the guard before it.
struct GuardEdits {
  cdi::Edits common;              ///< control devices and the driver's files
  std::vector<cdi::Mount> guard;  ///< of those mounts: what holds containers to their shares
  std::string program;            ///< of the hook that looks whether they do
};

/// The same with the pages that are in the folder `pages` (share/pages.h), and a hook that refuses containers
/// in which something else has taken the places of either.
cdi::Edits guarded_edits(const GuardEdits& edits, const std::string& pages);

}  // namespace drover::kube

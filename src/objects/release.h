#pragma once

// When the daemon is gone for good: takes from all definitions what keeps them from being deleted.

#include "base/result.h"
#include "kube/client/api.h"

namespace drover::objects {

/// Blocks; may be called again after an error. A cluster that has no such kinds, or shows them not to this
/// account, has none. Needs the rights to list and patch apps, schedules and jobs of drover.dev.
Status release_definitions(kube::Api& api);

}  // namespace drover::objects

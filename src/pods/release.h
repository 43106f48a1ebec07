#pragma once

// When a control plane is gone for good: its Lease says which journal it had, and by that its pods are known.
// They are ended, and let go of, since nobody else would.

#include <chrono>
#include <string>

#include "base/result.h"
#include "kube/client/api.h"

namespace drover::pods {

/// Notes in the Lease whose it is, for release_tasks(). It must be there.
Status note_journal(kube::Api& api, const std::string& name_space, const std::string& lease,
                    const std::string& journal);

/// Waits for so long at most until nobody has the Lease; kConflict when somebody keeps it. Fine when it is not
/// there. Blocks; may be called again after an error. Needs the rights to get and delete the Lease, to list,
/// patch and delete pods, and to list and delete priorityclasses.
Status release_tasks(kube::Api& api, const std::string& name_space, const std::string& lease,
                     std::chrono::milliseconds patience = std::chrono::seconds(60));

}  // namespace drover::pods

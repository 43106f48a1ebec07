#pragma once

// When a control plane goes for good: its Lease says which journal it has, and by that its pods are known.
// They are ended, and let go of, since nobody else would.

#include <chrono>
#include <string>

#include "base/result.h"
#include "kube/client/api.h"

namespace drover::pods {

/// Notes in the Lease whose it is, for release_tasks(). It must be there.
Status note_journal(kube::Api& api, const std::string& name_space, const std::string& lease,
                    const std::string& journal);

/// Ends the control plane, if it is the Deployment that has the Lease's name, and waits for so long at most
/// until nobody has the Lease: kConflict when somebody keeps it. As long at most it waits for the pods to go.
/// Fine when there is no Lease. Blocks; may be called again after an error. Needs the rights to get and
/// delete the Lease, to patch the Deployment, to list, patch and delete pods, and to list and delete
/// priorityclasses.
Status release_tasks(kube::Api& api, const std::string& name_space, const std::string& lease,
                     std::chrono::milliseconds patience = std::chrono::seconds(60));

/// Of anybody who has ended; waits likewise.
Status remove_lease(kube::Api& api, const std::string& name_space, const std::string& lease,
                    std::chrono::milliseconds patience = std::chrono::seconds(60));

}  // namespace drover::pods

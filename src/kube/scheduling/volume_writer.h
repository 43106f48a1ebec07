#pragma once

// Has claims of volumes that wait for their first pod get those that were decided. Each object is looked at
// first: what another has written is never overwritten.

#include "kube/client/api.h"
#include "kube/scheduler/scheduler.h"

namespace drover::kube {

inline const Resource kVolumeClaims{"", "v1", "persistentvolumeclaims"};
inline const Resource kVolumes{"", "v1", "persistentvolumes"};

/// Fine also when it stands there already. kConflict when a claim or a volume is another, or somebody else's
/// by now: what was written of the others is taken back then.
Status give_volumes(Api& api, const scheduler::VolumeWrite& what);
/// Has no more volumes made for the node, where none was yet. What a claim was bound to stays with it.
void take_volumes_back(Api& api, const scheduler::VolumeWrite& what);

}  // namespace drover::kube

#pragma once

// Writes into claims of devices what a scheduler has decided, and takes it back. What another has written
// is never overwritten: each claim is written as it was read, by us or before, and is refused when it has
// changed since.

#include <stop_token>

#include "kube/client/api.h"
#include "kube/scheduler/scheduler.h"

namespace drover::kube {

inline const Resource kResourceClaims{"resource.k8s.io", "v1", "resourceclaims"};

/// Fine also when it stands there already. kConflict when the claim is another, is being deleted, or has
/// other devices by now. One that has to be made has its name then, and the pod's status says which it is.
Status write_claim(Api& api, const scheduler::PodName& pod, scheduler::ClaimDecision& decision);
/// Fine when it does not stand there. With the devices that were decided, unless others use them. One that
/// was made is deleted.
Status clear_claim(Api& api, const scheduler::PodName& pod, const scheduler::ClaimDecision& decision);
/// Fine when it is gone already. Left alone when its pod is bound.
Status undo_left_claim(Api& api, const scheduler::LeftClaim& left);

}  // namespace drover::kube

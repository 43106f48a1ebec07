#pragma once

// Whether what is asked for is within what one user, and all together, may take up (base/user_limits.h): also
// what the daemon itself makes of definitions, in the name of their owners. Pure.

#include <vector>

#include "control/draft.h"
#include "control/event.h"

namespace drover::control {

/// New tasks, all of one owner. Tasks that have ended make room, the oldest first: his own, and where all
/// have too many, those of whoever has most.
Status admit(Draft& draft, const std::vector<workload::Task>& tasks);
/// New definitions of services and groups.
Status admit(const Draft& draft, const event::ServicesChanged& change);
Status admit(const Draft& draft, const workload::Schedule& schedule);
/// A framework that is new. Those that were removed make room, the oldest first.
Status admit(Draft& draft, const FrameworkRecord& framework);

}  // namespace drover::control

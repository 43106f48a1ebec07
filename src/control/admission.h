#pragma once

// Whether what a user asks for is within what one user may take up (base/user_limits.h). Pure.

#include <vector>

#include "control/draft.h"
#include "control/event.h"

namespace drover::control {

/// New tasks, all of one owner. Those of his tasks that have ended make room, the oldest first.
Status admit(Draft& draft, const std::vector<workload::Task>& tasks);
/// New definitions of services and groups.
Status admit(const Draft& draft, const event::ServicesChanged& change);
Status admit(const Draft& draft, const workload::Schedule& schedule);
/// A framework that is new. Those of its owner that were removed make room, the oldest first.
Status admit(Draft& draft, const FrameworkRecord& framework);

}  // namespace drover::control

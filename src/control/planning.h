#pragma once

// Lets placement plan the whole queue, and carries the plan into a draft. Pure.

#include "control/draft.h"
#include "placement/schedule.h"

namespace drover::control {

struct QueuePlan : placement::Plan {
  std::vector<std::uint64_t> behind;  ///< QueuePositions::behind
};

/// Jobs that are held back (holds.h) stand behind the others, with their reason.
QueuePlan plan_of(const Draft& draft);

/// Starts what the plan starts, asks its victims to end, and keeps why the rest waits.
void carry_out(Draft& draft, QueuePlan plan);

}  // namespace drover::control

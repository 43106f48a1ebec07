#pragma once

// Lets placement plan the whole queue, and carries the plan into a draft. Pure.

#include "control/draft.h"
#include "placement/schedule.h"

namespace drover::control {

/// Jobs that are held back (holds.h) stand behind the others, with their reason.
placement::Plan plan_of(const Draft& draft);

/// Starts what the plan starts, asks its victims to end, and keeps why the rest waits.
void carry_out(Draft& draft, placement::Plan plan);

}  // namespace drover::control

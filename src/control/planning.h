#pragma once

// Lets placement plan the whole queue, and carries the plan into a draft. Pure.

#include "control/draft.h"
#include "placement/schedule.h"

namespace drover::control {

/// TCP ports that gangs are given: each live gang another one, as long as there are any.
inline constexpr int kFirstGangPort = 31000;
inline constexpr int kLastGangPort = 32000;

placement::Plan plan_of(const Draft& draft);

/// Starts what the plan starts, asks its victims to end, and keeps why the rest waits.
void carry_out(Draft& draft, placement::Plan plan);

}  // namespace drover::control

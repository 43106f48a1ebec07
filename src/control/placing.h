#pragma once

// Where the scheduler of a cluster places (State::placed_by_others): hands over who waits, and takes note of
// where he was put. Pure.

#include <cstddef>

#include "control/draft.h"
#include "control/event.h"

namespace drover::control {

/// Lets those who wait be started by whoever places them, but for those who are held back, those who stand
/// behind too many others of their user (kPlannedOfUser), and those who ask for other GPUs than their group
/// has. A gang as a whole.
void ask_for_places(Draft& draft);

/// The task is under way.
void placed(Draft& draft, const event::Placed& event);

}  // namespace drover::control

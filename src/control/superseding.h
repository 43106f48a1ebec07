#pragma once

// Which changes may take the place of deployments under way without being forced. Pure.

#include "base/moment.h"
#include "control/event.h"
#include "control/state.h"

namespace drover::control {

/// Whether of every service that the change makes another, and that a deployment is at work on, no instance
/// of the version that it is to have now is up yet: nobody waits for the end of such a deployment. An
/// instance that follows one that failed counts once it has lasted (kSettled).
bool may_supersede(const State& state, const event::ServicesChanged& change, Moment now);

}  // namespace drover::control

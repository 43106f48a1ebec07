#pragma once

// What people are told of a decision: events are made of its notices. Pure.

#include <vector>

#include "base/moment.h"
#include "control/state.h"
#include "engine/event_query.h"

namespace drover::engine {

/// In the order of what happened, without numbers.
std::vector<EventView> events_of(const control::Outcome& outcome, Moment now);

}  // namespace drover::engine

#pragma once

// What accounts are made of, as the journal keeps it. Pure.

#include <vector>

#include "base/moment.h"
#include "control/state.h"
#include "store/allocation.h"

namespace drover::engine {

std::vector<store::Allocation> accounts_of(const control::Outcome& outcome, TimePoint steady);
/// Of all tasks that have something now: until now.
std::vector<store::Allocation> accounts_of_active(const control::State& state, Moment now);

}  // namespace drover::engine

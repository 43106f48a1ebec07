#pragma once

// What accounts are made of, as the journal keeps it. Pure.

#include <sys/types.h>

#include <optional>
#include <vector>

#include "base/moment.h"
#include "control/state.h"
#include "store/allocation.h"

namespace drover::engine {

std::vector<store::Allocation> accounts_of(const control::Outcome& outcome, TimePoint steady);
/// Of the tasks that have something now, this user's or all: until now, and without an ending.
std::vector<store::Allocation> accounts_of_active(const control::State& state, std::optional<uid_t> owner,
                                                  Moment now);

}  // namespace drover::engine

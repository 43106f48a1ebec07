#pragma once

// What no decision may do, whatever mistake it comes from: give a GPU that the machine does not have, or more
// of one than there is, and pass a quota or the limit of a queue. Looked at in every build, of what newly
// takes something: work that runs already goes on when a limit is lowered. Written apart from what decides.
// Pure.

#include <optional>

#include "control/state.h"

namespace drover::control {

/// Which one the outcome would break, if it counted; none when all is well.
std::optional<Error> broken_invariant(const State& state, const Outcome& outcome);

}  // namespace drover::control

#pragma once

// Why an upgrade comes no further. Pure.

#include <optional>
#include <string>

#include "control/state.h"

namespace drover::control {

/// When new instances of a service wait for what its own old ones have, and these must stay well until the
/// new ones are: that, in words, and what to ask for instead. None when something else holds it up, too.
std::optional<std::string> upgrade_block(const State& state, const std::string& service);

}  // namespace drover::control

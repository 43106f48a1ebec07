#pragma once

// What a long list costs those who did not ask for it: how long a short answer takes while somebody else asks
// for the list again and again.

#include <nlohmann/json.hpp>

#include "load.h"

namespace drover::bench {

/// One for each list, the first for none: answers that were timed, and milliseconds of the median and the
/// longest; lists that were answered meanwhile.
nlohmann::json time_neighbours(Subject& subject, Connection& api, int rounds);
void print_neighbours(const nlohmann::json& neighbours);

}  // namespace drover::bench

#pragma once

// What one thing that happens costs, with everything loaded.

#include "load.h"

namespace drover::bench {

/// `size` is what the daemon was filled with.
std::vector<Row> time_changes(Subject& subject, Connection& api, const Size& size, int rounds);

}  // namespace drover::bench

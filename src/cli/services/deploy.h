#pragma once

// What commands that change apps have in common: they start deployments, wait for them, and say how that
// ended.

#include <string>
#include <vector>

#include "cli/context.h"
#include "cli/services/watch.h"

namespace drover::cli {

/// Waits for the deployments of `watched`, unless `detach`, and returns the exit status: 0; 1 when an app is
/// not up afterwards; 128 + SIGINT at Ctrl-C. With `detach` the ids of the deployments are printed. `quiet`:
/// nothing but errors is printed.
Result<int> finish_deployments(const Client& client, const Watched& watched, bool detach, bool quiet);

/// Whether as many instances run as are to; what is not there is up when it was to go.
Result<bool> is_up(const Client& client, const std::string& app);

}  // namespace drover::cli

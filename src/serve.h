#pragma once

// `drover serve`: puts the daemon together and runs it until SIGINT or SIGTERM. Needs root.

#include "base/result.h"
#include "cli/cli.h"

namespace drover {

Status serve(const cli::ServeOptions& options);

/// Makes a backup the journal of a state folder: store::restore(), for root.
Result<std::string> restore(const std::string& state, const std::string& backup, bool force);

}  // namespace drover

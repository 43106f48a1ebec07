#pragma once

// `drover serve`: puts the daemon together and runs it until SIGINT or SIGTERM. Needs root.

#include "base/result.h"
#include "cli/cli.h"

namespace drover {

Status serve(const cli::ServeOptions& options);

}  // namespace drover

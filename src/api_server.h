#pragma once

// The API server of a cluster as a way for the command line to a daemon behind it.

#include <string>

#include "base/result.h"
#include "cli/gateway.h"

namespace drover {

/// What a kubeconfig's context, or its current one for "", says; its files are read. The path is left to the
/// caller. No login programs are run.
Result<cli::Gateway> api_server_of(const std::string& kubeconfig, const std::string& context);

}  // namespace drover

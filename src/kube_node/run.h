#pragma once

// `drover kube node`: puts the parts of a Kubernetes node together and runs them until SIGINT or SIGTERM.
// Needs root.

#include "base/result.h"
#include "cli/cli.h"

namespace drover {

Status run_kube_node(const cli::KubeNodeOptions& options);

}  // namespace drover

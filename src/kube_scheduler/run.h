#pragma once

// `drover kube scheduler`: puts the parts of the scheduler of a cluster together and runs them until SIGINT
// or SIGTERM.

#include "base/result.h"
#include "cli/cli.h"

namespace drover {

Status run_kube_scheduler(const cli::KubeSchedulerOptions& options);

}  // namespace drover

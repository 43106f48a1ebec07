#pragma once

// `drover serve --engine kubernetes`: the daemon whose tasks are pods of a cluster, where its scheduler
// places them. Of the machine that it runs on it only takes its state folder; with a Lease, once it has that.

#include "base/result.h"
#include "cli/cli.h"

namespace drover {

Status run_cluster(const cli::ServeOptions& options);

}  // namespace drover

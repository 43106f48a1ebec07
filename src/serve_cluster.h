#pragma once

// `drover serve --engine kubernetes`: the daemon whose tasks are pods of a cluster, where its scheduler
// places them. Of the machine that it runs on it only takes its state folder.

#include "base/result.h"
#include "cli/cli.h"
#include "daemon.h"

namespace drover {

Status run_cluster(const cli::ServeOptions& options, Opened opened);

}  // namespace drover

#pragma once

// `drover kube withdraw`: puts the parts together that take from a cluster what an uninstall leaves.

#include "base/result.h"
#include "cli/cli.h"

namespace drover {

/// From how many Nodes labels and conditions were taken.
Result<int> run_kube_withdraw(const cli::KubeWithdrawOptions& options);

}  // namespace drover

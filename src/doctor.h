#pragma once

// `drover doctor`: the prerequisites of this machine, each found or missing, and how to mend it. Looks only;
// blocks.

#include <vector>

#include "cli/cli.h"

namespace drover {

std::vector<cli::Check> examine_machine();

}  // namespace drover

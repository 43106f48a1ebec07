#pragma once

// The log of programs that serve: lines on standard error, for people or as JSON.

#include "cli/cli.h"

namespace drover {

/// Before the first line, and before threads.
void set_up_log(const cli::LogOptions& options);

}  // namespace drover

#pragma once

// What this machine's GPUs do, for who looks without a daemon, as /v1/gpus?usage=true has it. Processes are
// in no task: which they are in only a daemon knows.

#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace drover {

/// Looks when it is called, with what it keeps between calls; blocks for as long as the driver does. For one
/// thread at a time.
std::function<Result<nlohmann::json>()> gpus_here();

}  // namespace drover

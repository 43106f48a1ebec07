#pragma once

// What the GPUs do, as one caller may see it: everybody the cards and whose they are; which task it is, and
// its processes, only its owner and root. Of the processes of others there are sums.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "api/async.h"
#include "api/router.h"
#include "metrics/gpu_metrics.h"

namespace drover::api {

/// Processes that are in no task, on one GPU.
struct ForeignProcesses {
  std::uint64_t count = 0;
  std::uint64_t memory_bytes = 0;
};

struct Measured {
  metrics::MachineFacts machine;
  std::map<std::string, ForeignProcesses> foreign;  ///< by UUID
};

/// Asks the driver, which may take seconds. On the control strand; kUnsupported when the daemon does not
/// look.
asio::awaitable<Result<Measured>> measure(const Services& services, const engine::Caller& caller);

/// "usage" and "processes" of one GPU of /v1/gpus; of what is not known, null.
nlohmann::json view_usage(const Measured& measured, const std::string& uuid);

}  // namespace drover::api

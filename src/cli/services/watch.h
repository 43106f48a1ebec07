#pragma once

// Watches deployments until they have ended, and instances without health checks for some seconds more: a
// table that stands still on a terminal, a line for each change otherwise. How an instance failed is told
// below, with what it wrote last.

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client.h"
#include "cli/services/progress.h"

namespace drover::cli {

struct Watched {
  std::set<std::string> deployments;
  std::vector<std::string> apps;  ///< shown in this order
};

enum class WatchEnd {
  kEnded,        ///< none of the deployments is under way any more
  kInterrupted,  ///< by Ctrl-C
  kTimedOut,
  kFailing,  ///< instances keep failing (progress.h)
};

struct WatchResult {
  WatchEnd end = WatchEnd::kEnded;
  Progress::Failing failing;     ///< with kFailing
  std::set<std::string> fallen;  ///< apps of which instances ended right after they were up
};

/// The deployments survive every end of the watching. A daemon that goes away is waited for, two minutes
/// long. `timeout`: so long at most; `quiet`: nothing is printed.
Result<WatchResult> watch_deployments(const Client& client, const Watched& watched,
                                      std::optional<std::chrono::milliseconds> timeout, bool quiet);

}  // namespace drover::cli

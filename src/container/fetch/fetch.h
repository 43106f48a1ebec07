#pragma once

// The daemon's side of fetching: starts the fetcher for one task, hears what it says, and ends it. Blocks;
// run it on the pool. Thread safe.

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/users.h"
#include "container/fetch/fetcher.h"
#include "workload/task.h"

namespace drover::container {

struct FetchPlan {
  std::string executable;  ///< the drover program, for `drover fetcher`
  std::string caches;      ///< the folder in which every user has a cache; "": none is used
  FetchLimits limits;
};

/// Brings `files` into `sandbox` with the rights of `user`, whom it belongs to. Nothing to bring is fine. One
/// Error that names URI and cause. A request to stop ends it at once.
Status fetch_all(const FetchPlan& plan, const std::vector<workload::Fetch>& files, const Directory& sandbox,
                 const User& user, const std::function<void(const std::string&)>& progress,
                 const std::stop_token& stop);

}  // namespace drover::container

#pragma once

// What a cluster is like at one moment, for who only asks: each kind of objects is listed once, with the
// rights of whoever asks. Blocks, and not without end.

#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"
#include "kube/client/api.h"
#include "kube/client/server_version.h"
#include "kube/scheduler/scheduler.h"

namespace drover::kube {

struct ReadingOptions {
  ServerVersion version = scheduler::kNewestKnown;
  std::chrono::milliseconds patience = std::chrono::minutes(2);  ///< for all of it
  std::function<void(const std::string&)>
      warn;  ///< hears what cannot be read; such an object counts as absent
};

/// Tells `to` of all that there is. kPermissionDenied names every right that is missing; kTimeout.
Status read_cluster(Api& api, const ReadingOptions& options, scheduler::Scheduler& to);

}  // namespace drover::kube

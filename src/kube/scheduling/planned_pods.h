#pragma once

// Pods that somebody thinks of making: as the API server would take them, with all that it fills in, and with
// the claims that would be made for them. Nothing is made. Blocks, and not without end.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/client/api.h"
#include "kube/client/server_version.h"
#include "kube/scheduler/scheduler.h"

namespace drover::kube {

/// Tells `to` of them, and returns their uids. What the API server refuses is refused in its words; a pod
/// without a namespace is of `name_space`.
Result<std::vector<std::string>> plan_pods(Api& api, const std::vector<nlohmann::json>& pods,
                                           const std::string& name_space, const ServerVersion& version,
                                           scheduler::Scheduler& to);

}  // namespace drover::kube

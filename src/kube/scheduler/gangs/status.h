#pragma once

// What the scheduler of a gang writes into the status of Kubernetes' own PodGroup (scheduling.k8s.io): as
// kube-scheduler does. Pure.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/units.h"
#include "kube/client/object.h"

namespace drover::kube::scheduler {

enum class GangOutcome {
  kScheduled,
  kUnschedulable,  ///< it waits
  kError,          ///< something of ours, or of the cluster's, has failed
  kPreempted,      ///< it is being ended for others
};

/// A strategic merge patch of podgroups/status; nullopt when it stands there, or when the group has started
/// before: whether it waits again is not told. `resource` says in which version `pod_group` is.
std::optional<nlohmann::json> pod_group_status(const Resource& resource, const nlohmann::json& pod_group,
                                               GangOutcome outcome, const std::string& message,
                                               TimePoint now);

}  // namespace drover::kube::scheduler

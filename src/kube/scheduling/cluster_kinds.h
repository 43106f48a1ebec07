#pragma once

// Which objects of a cluster a scheduler has to know of, and what it is told of each: the same for those who
// follow them and for those who read them once. Values; thread safe.

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/client/api.h"
#include "kube/client/server_version.h"
#include "kube/scheduler/scheduler.h"

namespace drover::kube {

using SchedulerChange = std::function<void(scheduler::Scheduler&)>;

/// What the scheduler is told of an object, and of its end.
struct ObjectChange {
  mutable SchedulerChange put;  ///< let go when it was told
  SchedulerChange end;
};

struct ClusterKind {
  Resource resource;
  bool everywhere = true;  ///< else it depends on the API server whether there are any
  std::function<Result<ObjectChange>(const nlohmann::json& object)> read;
};
/// All but Queues and Quotas. `warn` hears, from any thread, of what is only half understood.
std::vector<ClusterKind> cluster_kinds(const ServerVersion& version,
                                       std::function<void(const std::string&)> warn);

/// Queues and Quotas, by their names. Where a mistake in one is no reason to do without the others, all are
/// looked at together.
struct SharingObjects {
  std::map<std::string, Object> queues, quotas;
};
SchedulerChange put_sharing(const SharingObjects& objects);

/// An object that a gang has asked for.
SchedulerChange put_group(const Resource& resource, const nlohmann::json& object);

}  // namespace drover::kube

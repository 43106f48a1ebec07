#pragma once

// Which queue a pod stands in, and whether it may. Pure.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/scheduler/sharing/rules.h"

namespace drover::kube::scheduler {

/// Of pods, workloads and namespaces, as a label or an annotation: the name of a Queue.
inline constexpr const char* kQueueLabel = "drover/queue";

/// Names of queues that somebody gave, as they stand there.
struct QueueNames {
  std::string own;                   ///< `drover/queue`, as a label or an annotation; "": none
  std::vector<std::string> foreign;  ///< for other schedulers: they count where we have a queue of that name

  bool operator==(const QueueNames&) const = default;
};
/// Of a pod, or of a Namespace. Damaged metadata has none.
QueueNames read_queue_names(const nlohmann::json& object);

/// The path of the first that is named: by the pod for us, by it for others, by its namespace. Else the
/// default queue.
std::string queue_of(const Sharing& sharing, const QueueNames& pod, const QueueNames& name_space);

/// Whether pods of `name_space` may stand in that queue with that priority. The error is a sentence for
/// whoever made the pod: kNotFound names the queues that there are; kPermissionDenied; kInvalid where the
/// queue, one above it, or the namespace's quota is not accepted.
Status may_stand(const Sharing& sharing, const std::string& queue, const std::string& name_space,
                 std::int64_t priority);

}  // namespace drover::kube::scheduler

// Pods whose devices have got a taint that ends whoever has them.

#include <utility>

#include "kube/scheduler/scheduler.h"

namespace drover::kube::scheduler {

/// Kubernetes' own controller ends pods for the taints of devices that they claim, but looks at no claim that
/// was made for a pod's resources: those are ours to end. They have no way to tolerate anything.
void Scheduler::evict_tainted(TimePoint now, Round& round) {
  if (!std::exchange(taints_changed_, false)) return;
  for (const auto& [name_space, uid, taint] : claims_.ended_by_taints()) {
    const auto found = pods_.find(uid);
    if (found == pods_.end() || !is_ours(found->second)) continue;
    auto& known = found->second;
    const auto& pod = known.object.pod;
    if (pod.name_space != name_space) continue;  // whatever the claim says
    if (known.node.empty() || pod.terminating || known.evicted) continue;
    if (!known.decided) evict({uid}, {.device_taint = taint.key}, now, round);
    taints_changed_ = taints_changed_ || !known.evicted;
  }
}

}  // namespace drover::kube::scheduler

#pragma once

// What a pod could do without, or somebody could change, so that more nodes do: of all that placement does
// not count. Pure; nothing here is tried.

#include <functional>
#include <string>
#include <vector>

#include "kube/scheduler/cluster.h"
#include "kube/scheduler/pod.h"

namespace drover::kube::scheduler {

struct Wish {
  std::function<void(PodTemplate&)> give_up;  ///< changes the pod so that it is as if that were done
  /// What to do, for a pod that would then go to `node`: "tolerate the taint 'dedicated:NoSchedule'".
  std::function<std::string(const std::string& node)> remedy;
};

/// Those first that are easiest given up; not more than some dozens.
std::vector<Wish> wishes_of(const PodTemplate& pod, const Cluster& cluster);

}  // namespace drover::kube::scheduler

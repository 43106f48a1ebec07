#include "kube/kubelet/device_users.h"

#include <algorithm>
#include <utility>

namespace drover::kube {

void DeviceUsers::told(PodResources resources, const std::optional<std::map<PodName, std::string>>& running,
                       Clock::time_point now) {
  if (!first_) first_ = now;
  const bool whole = !running || std::ranges::all_of(*running, [&](const auto& pod) {
    return resources.pods.contains(pod.first);
  });
  known_ = known_ || whole || now - *first_ >= kPatience;
  auto before = std::exchange(containers_, std::move(resources.containers));
  for (auto& use : before) {
    const PodName pod{use.pod_namespace, use.pod};
    if (running && running->contains(pod) && !resources.pods.contains(pod))
      containers_.push_back(std::move(use));
  }
}

}  // namespace drover::kube

#include "kube/kubelet/device_users.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace drover::kube {

void DeviceUsers::update(PodResources resources, const std::optional<std::map<PodName, std::string>>& running,
                         Clock::time_point now) {
  if (!first_) first_ = now;
  const bool whole = !running || std::ranges::all_of(*running, [&](const auto& pod) {
    return resources.pods.contains(pod.first);
  });
  known_ = known_ || whole || now - *first_ >= kPatience;
  const auto before = std::exchange(containers_, std::move(resources.containers));
  std::set<std::tuple<std::string, std::string, std::string>> there;
  for (const auto& use : containers_) there.emplace(use.pod_namespace, use.pod, use.container);
  for (auto use : before) {
    if (there.contains({use.pod_namespace, use.pod, use.container})) continue;
    if (!running) {  // nobody says that it has ended
      if (use.forgotten) containers_.push_back(std::move(use));
      continue;
    }
    const PodName pod{use.pod_namespace, use.pod};
    const auto uid = running->find(pod);
    if (uid == running->end()) continue;
    if (const auto old = uids_.find(pod); old != uids_.end() && old->second != uid->second) continue;
    use.forgotten = resources.pods.contains(pod);
    if (!use.forgotten || !use.devices.empty()) containers_.push_back(std::move(use));
  }
  if (running) uids_ = *running;
}

}  // namespace drover::kube

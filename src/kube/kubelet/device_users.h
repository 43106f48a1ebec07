#pragma once

// Which containers have devices, over restarts of the kubelet: one that has just started learns of its pods
// only after a while, and says until then that nobody has anything. What the container runtime runs shows
// what is missing. One whose checkpoint of devices was lost never learns which of them its pods have: they
// stay theirs, as forgotten, until their pods have ended. Pure; not thread safe.

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kube/kubelet/pod_resources.h"

namespace drover::kube {

class DeviceUsers {
 public:
  using Clock = std::chrono::steady_clock;
  /// A pod that the kubelet does not tell of by then is not its own.
  static constexpr std::chrono::seconds kPatience{10};

  /// `running` are the pods of the container runtime, by their names, asked after the kubelet; absent when it
  /// does not answer.
  void update(PodResources resources, const std::optional<std::map<PodName, std::string>>& running,
              Clock::time_point now);

  /// Whether every pod that runs has been told of.
  bool known() const { return known_; }
  const std::vector<ContainerUse>& containers() const { return containers_; }

 private:
  std::vector<ContainerUse> containers_;
  std::map<PodName, std::string> uids_;  ///< of the pods that ran when they were told of last
  std::optional<Clock::time_point> first_;
  bool known_ = false;
};

}  // namespace drover::kube

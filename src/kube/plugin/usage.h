#pragma once

// Which resource each GPU is in use as. The kubelet knows, but tells of a container's devices only some time
// after it was given them: until then they count as taken. Pure; not thread safe.

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/kubelet/pod_resources.h"
#include "kube/plugin/resources.h"

namespace drover::kube {

class Usage {
 public:
  using Clock = std::chrono::steady_clock;
  /// A pod that was given devices and does not show up by then was not started.
  static constexpr std::chrono::seconds kPatience{60};

  /// A container was just given a device of this resource.
  void granted(std::string_view resource, std::string_view device_id, Clock::time_point now);
  /// What all containers have now; `containers` were asked for at `asked`. Whether some device was
  /// somebody's and is nobody's now.
  bool seen(const std::vector<ContainerUse>& containers, Clock::time_point asked);

  const Holders& holders() const { return holders_; }
  /// Whether some container was said to have the device.
  bool has(const std::string& device_id) const { return users_.contains(device_id); }
  /// The pod that has the device, of which the kubelet knows nothing: "'team-a/training'"; "" when there is
  /// none.
  std::string forgotten_user(const std::string& device_id) const;

 private:
  void sum_up();

  Holders shown_;
  std::map<std::pair<std::string, std::string>, Clock::time_point> awaited_;  ///< UUID and resource
  Holders holders_;
  struct User {
    std::string pod;
    bool forgotten = false;
  };
  std::map<std::string, User> users_;  ///< by the device's id
};

}  // namespace drover::kube

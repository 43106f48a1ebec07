#pragma once

// Which containers have which devices, as the kubelet knows it (its pod-resources API). Blocks.

#include <chrono>
#include <compare>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover::kube {

struct PodName {
  std::string name_space, name;

  auto operator<=>(const PodName&) const = default;
};

/// Devices of a device plugin.
struct PluginUse {
  std::string resource;  ///< "nvidia.com/gpu"
  std::vector<std::string> device_ids;

  bool operator==(const PluginUse&) const = default;
};

/// A device of a claim.
struct ClaimUse {
  std::string claim;  ///< in the pod's namespace
  std::string driver, pool, device;
  std::string share_id;  ///< "" when the device is not shared

  bool operator==(const ClaimUse&) const = default;
};

struct ContainerUse {
  std::string pod_namespace, pod, container;
  std::vector<PluginUse> devices;
  std::vector<ClaimUse> claims;
  bool forgotten = false;  ///< by the kubelet, which may give the devices to others; see DeviceUsers

  bool operator==(const ContainerUse&) const = default;
};

inline constexpr const char* kPodResourcesSocket = "/var/lib/kubelet/pod-resources/kubelet.sock";
/// Of a kubelet with this folder.
inline std::string pod_resources_socket(const std::string& kubelet) {
  return kubelet + "/pod-resources/kubelet.sock";
}

struct PodResources {
  std::set<PodName> pods;                ///< all that the kubelet knows, also those without devices
  std::vector<ContainerUse> containers;  ///< those that have a device
};

/// kUnavailable when the kubelet does not answer in time.
Result<PodResources> list_pod_resources(const std::string& socket, std::chrono::milliseconds patience);

}  // namespace drover::kube

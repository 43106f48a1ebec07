#pragma once

// Which container runtime a node has, and whether it does what CDI specifications say. One that does not
// starts containers without their devices, and tells nobody. And which containers it runs, and how they end.

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/kubelet/pod_resources.h"
#include "kube/plugin/allocation.h"

namespace drover::kube {

inline constexpr const char* kContainerdSocket = "/run/containerd/containerd.sock";

struct ContainerRuntime {
  std::string name;     ///< "containerd", "cri-o"
  std::string version;  ///< "1.7.24", as it tells it
  CdiSupport cdi = CdiSupport::kUnknown;
  std::string advice;  ///< how to switch CDI on; "" when nothing is known to be wrong

  bool operator==(const ContainerRuntime&) const = default;
};

/// What follows from what a runtime tells. `configuration` is the "config" of its verbose status: containerd
/// says "enableCDI" there, from 1.7 on. Pure.
ContainerRuntime judge_runtime(std::string name, std::string version, std::string_view configuration);

/// Asks the runtime at a socket. Blocks up to `patience`; kUnavailable when it does not answer.
Result<ContainerRuntime> ask_runtime(const std::string& socket, std::chrono::milliseconds patience);

/// A container of a pod that runs now.
struct RunningContainer {
  std::string id;
  std::string pod_namespace, pod, container;
  std::string pod_uid = {};
  std::string replica = {};  ///< whose pages it has (plugin/replica_pages.h); "" for none

  bool operator==(const RunningContainer&) const = default;
};

/// Every one that the kubelet has started. Blocks up to `patience`; kUnavailable when the runtime does not
/// answer.
Result<std::vector<RunningContainer>> list_containers(const std::string& socket,
                                                      std::chrono::milliseconds patience);

/// UIDs of the pods that run now. Asking the runtime needs no right to read pods of the whole cluster. Blocks
/// up to `patience`; kUnavailable when it does not answer.
Result<std::map<PodName, std::string>> list_pod_uids(const std::string& socket,
                                                     std::chrono::milliseconds patience);

/// Kills the containers of the pod with this UID that run, whoever else is stopping them more slowly. Fine
/// when none does. Blocks up to `patience`; kUnavailable when the runtime does not answer, or refuses.
Status kill_pod(const std::string& socket, const std::string& uid, std::chrono::milliseconds patience);

/// The same for one container.
Status kill_container(const std::string& socket, const std::string& id, std::chrono::milliseconds patience);

}  // namespace drover::kube

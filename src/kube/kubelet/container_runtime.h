#pragma once

// Which container runtime a node has, and whether it does what CDI specifications say. One that does not
// starts containers without their devices, and tells nobody.

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
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

}  // namespace drover::kube

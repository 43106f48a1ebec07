#pragma once

// Whose a GPU and a process are on a node of a cluster. The kubelet tells which container has which devices,
// the container runtime the names of the containers that run, and a process's cgroup its container. Pure.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/device.h"
#include "gpu/mig.h"
#include "gpu/strangers.h"
#include "kube/kubelet/container_runtime.h"
#include "kube/kubelet/pod_resources.h"
#include "metrics/processes.h"

namespace drover::kube {

/// Whose container an owner of GPUs is here.
PodName pod_of(const metrics::Owner& owner);

/// What claims call this node's GPUs.
struct ClaimNames {
  std::string driver;
  std::string pool;
};

/// Who has each GPU and each MIG device, by UUID, sorted; whoever has a MIG device has its GPU too. Where
/// containers that run and others have the same one, the others are left out: older kubelets go on to tell of
/// pods that have ended. `mig` is by UUID of the GPU; `running` is absent when nobody tells.
std::map<std::string, std::vector<metrics::Owner>> gpu_holders(
    const gpu::Inventory& inventory, const std::map<std::string, gpu::MigGpu>& mig, const ClaimNames& claims,
    const std::vector<ContainerUse>& uses, const std::optional<std::vector<RunningContainer>>& running);

metrics::Owner owner_of(const RunningContainer& container);

/// In which of these a process is, by its id: the first that its cgroups are named after, as containerd and
/// CRI-O name them in versions 1 and 2, by themselves and through systemd. "" when it is in none.
gpu::TaskOf container_by_cgroup(const std::vector<RunningContainer>& running);
/// Who uses a shared GPU and is in no container that is known: one that has started since, perhaps. A process
/// may be there before the runtime tells of its container, so it is one in the first few looks, and no more
/// later: many are in none at all. Not thread safe.
class Newcomers {
 public:
  static constexpr int kLooks = 5;
  static constexpr std::size_t kMost = 200;  ///< that are remembered

  /// One that was looked at is in these control groups. Whether that is new.
  bool see(std::string_view cgroups);

 private:
  std::map<std::string, int, std::less<>> looks_;  ///< by their control groups
};

/// Whose it is; nobody's when it is in none.
metrics::OwnerOf owner_by_cgroup(const std::vector<RunningContainer>& running);

}  // namespace drover::kube

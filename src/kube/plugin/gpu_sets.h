#pragma once

// What one container was given together, as a CDI device of its own: it says in NVIDIA_VISIBLE_DEVICES whose
// GPUs it has. The device of a GPU says `void` there, whichever others its container has, and what the later
// device says counts. All sets are in one file, which is always whole: those that containers have, and those
// that were given or asked for a moment ago. The kubelet asks before each start of a container, so that none
// is missed whom it does not tell of, and whoever takes this process's place has nothing to remember.

#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cdi/specification.h"
#include "kube/kubelet/pod_resources.h"
#include "kube/plugin/resources.h"

namespace drover::kube {

inline constexpr const char* kPluginSetKind = "k8s.device-plugin.nvidia.com/set";

/// UUIDs of GPUs, or of MIG devices.
using GpuSet = std::set<std::string>;

/// Those of the devices with these ids: of several replicas of a GPU once.
GpuSet gpu_set(const std::vector<std::string>& device_ids);
/// The name of the set's CDI device, with its kind: the same always.
std::string set_device(const GpuSet& gpus);
/// Of these sets, each at most once. No set: no device.
cdi::Specification set_specification(const std::set<GpuSet>& sets);
/// What containers have of these resources: of each what it was given at once, which the kubelet tells by
/// NUMA node.
std::set<GpuSet> sets_of(const std::vector<ContainerUse>& containers,
                         const std::vector<OfferedResource>& resources);

/// Keeps the specification. Blocks; thread safe.
class GpuSets {
 public:
  using Clock = std::chrono::steady_clock;
  /// A container that was given a set and is not told of by then was not started.
  static constexpr std::chrono::seconds kPatience{60};

  /// The folder of specifications.
  explicit GpuSets(const std::string& folder);

  /// A container is about to be made with it: it is there when this returns.
  Status add(const GpuSet& gpus, Clock::time_point now);
  /// All that containers have, asked for at `asked`. The others go when they were not needed for a while.
  Status saw(const std::set<GpuSet>& sets, Clock::time_point asked);

 private:
  Status write() const;

  const std::string path_;
  std::mutex mutex_;                            ///< of what follows, and the file
  std::map<GpuSet, Clock::time_point> needed_;  ///< when last
};

}  // namespace drover::kube

#pragma once

// Which of the devices that are free the kubelet should take: for whole GPUs the exact optimum of
// placement/device_choice.h, in microseconds. Never fails: a GPU that is gone, or an id that nobody knows, is
// only not preferred. Pure; thread safe.

#include <string>
#include <vector>

#include "gpu/device.h"
#include "kube/plugin/config.h"
#include "placement/wiring.h"

namespace drover::kube {

class PreferredAllocation {
 public:
  explicit PreferredAllocation(const gpu::Inventory& inventory);

  /// `size` ids out of `available`, with all of `must_include`; fewer when there are fewer, and none more
  /// than once. Devices are whole GPUs.
  std::vector<std::string> of_gpus(const std::vector<std::string>& available,
                                   const std::vector<std::string>& must_include, int size) const;

  /// The same of replicas.
  static std::vector<std::string> of_replicas(const std::vector<std::string>& available,
                                              const std::vector<std::string>& must_include, int size,
                                              SharedPolicy policy);

 private:
  placement::DeviceMask known(const std::vector<std::string>& ids) const;

  std::vector<std::string> uuids_;  ///< by their bit
  placement::Wiring wiring_;
};

}  // namespace drover::kube

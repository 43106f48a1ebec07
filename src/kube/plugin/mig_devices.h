#pragma once

// MIG devices for the kubelet's device manager: those that are there already, which somebody has cut for it.
// The words are those of NVIDIA's `--mig-strategy`. Pure.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "gpu/mig.h"
#include "kube/plugin/config.h"

namespace drover::kube {

struct PluginPart {
  std::string resource;  ///< what it is offered as
  std::string gpu;       ///< UUID of the whole GPU
  gpu::MigInstanceFacts instance;
  gpu::MigProfile profile;

  bool operator==(const PluginPart&) const = default;
};

/// What the node offers by limits.
struct PluginDevices {
  /// A GPU in MIG mode is not among its devices, and its MIG devices are: by their UUIDs, with what holds for
  /// the GPU.
  gpu::Inventory inventory;
  std::map<std::string, PluginPart, std::less<>> parts;  ///< of MIG devices, by UUID
  std::string trouble;  ///< why no MIG device is offered though the strategy asks for them; "" when some are

  bool operator==(const PluginDevices&) const = default;
};

/// `mig` is by UUID of the GPU; instances in `made` are made for claims, and not offered.
PluginDevices plugin_devices(const gpu::Inventory& inventory, const std::map<std::string, gpu::MigGpu>& mig,
                             const std::set<gpu::MigPart>& made, MigStrategy strategy);

/// How devices are joined that are these GPUs, by their place in the inventory, or parts of them.
std::vector<std::vector<gpu::Link>> links_between(const gpu::Inventory& inventory,
                                                  const std::vector<std::size_t>& origins);

}  // namespace drover::kube

#pragma once

// What a node's labels say of its GPUs, under the names of NVIDIA's GPU feature discovery where the meaning
// is the same (k8s-device-plugin, internal/lm), and under "drover/" where it has none. Pure but for
// read_node_facts().
//
// Feature discovery names one model, and counts that one: of a node with several, which one is chance there,
// and here that of the first GPU. "drover/gpu.model.<model>" has all of them. A node whose GPUs are of
// several NVLink cliques has no gpu.clique. MIG devices are told of where they are offered by limits: those
// that claims have made come and go, and partial compute instances are given to nobody.

#include <map>
#include <string>
#include <string_view>

#include "gpu/device.h"
#include "kube/plugin/config.h"
#include "kube/plugin/mig_devices.h"

namespace drover::kube {

using Labels = std::map<std::string, std::string>;

struct NodeFacts {
  gpu::Inventory inventory;
  std::string machine;                             ///< "DGX H100"; "" when it is not known
  std::map<std::string, std::string> pci_classes;  ///< by UUID: "0x030200"
  PluginDevices offered;                           ///< by limits
};

/// Asks the kernel below `root` about the machine of these GPUs.
NodeFacts read_node_facts(const std::string& root, gpu::Inventory inventory, PluginDevices offered = {});

/// None for a node without GPUs.
Labels node_labels(const NodeFacts& facts, const PluginConfig& config);

/// As feature discovery makes a label's value of a name: '-' for spaces, and without what may not stand in
/// it; at most `longest` characters.
std::string label_value(std::string_view text, std::size_t longest = 63);

}  // namespace drover::kube

#include "gpu/topology.h"

#include <fmt/format.h>

#include "base/ranges.h"

namespace drover::gpu {
namespace {

constexpr std::string_view kLegend =
    "\nLegend:\n\n"
    "  X    = the GPU itself\n"
    "  SYS  = PCIe, and the interconnect between NUMA nodes\n"
    "  NODE = PCIe, and the interconnect between the host bridges of one NUMA node\n"
    "  PHB  = PCIe, and one host bridge (a CPU)\n"
    "  PXB  = several PCIe bridges, but no host bridge\n"
    "  PIX  = at most one PCIe bridge\n"
    "  NV#  = that many NVLinks\n";

}  // namespace

std::string link_label(const Link& link) {
  return link.nvlinks > 0 ? fmt::format("NV{}", link.nvlinks) : std::string(to_string(link.pcie));
}

std::string topology_matrix(const Inventory& inventory) {
  if (inventory.devices.empty()) return "";
  std::string text;
  for (const auto& device : inventory.devices) text += fmt::format("\tGPU{}", device.index);
  text += "\tCPU Affinity\tNUMA Affinity\n";
  for (std::size_t i = 0; i < inventory.devices.size(); ++i) {
    const auto& device = inventory.devices[i];
    text += fmt::format("GPU{}", device.index);
    for (std::size_t j = 0; j < inventory.devices.size(); ++j)
      text += "\t" + (i == j ? " X " : link_label(inventory.links.at(i).at(j)));
    text += fmt::format("\t{}\t{}\n", device.cpus.empty() ? "N/A" : format_ranges(device.cpus),
                        device.numa_node ? std::to_string(*device.numa_node) : "N/A");
  }
  text += kLegend;
  return text;
}

}  // namespace drover::gpu

#include "placement/node_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "placement/request.h"
#include "placement/wiring_tables.h"

namespace drover::placement {
namespace {

std::size_t devices_of(const Node& node) {
  return std::min<std::size_t>(node.inventory.devices.size(), kMaxDevices);
}

/// A kernel on a machine of one NUMA node says of no device where it is.
std::optional<int> numa_of_device(const Node& node, std::size_t device) {
  const auto& said = node.inventory.devices[device].numa_node;
  if (said || node.numa.size() != 1) return said;
  return node.numa.front().id;
}

gpu::Link link_of(const Node& node, std::size_t a, std::size_t b) {
  const auto& links = node.inventory.links;
  return a < links.size() && b < links[a].size() ? links[a][b] : gpu::Link{};
}

std::vector<std::vector<gpu::Link>> links_of(const Node& node) {
  const auto count = devices_of(node);
  std::vector<std::vector<gpu::Link>> links(count, std::vector<gpu::Link>(count));
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = 0; b < count; ++b) links[a][b] = link_of(node, std::min(a, b), std::max(a, b));
  return links;
}

std::vector<std::optional<int>> numa_of_devices(const Node& node) {
  std::vector<std::optional<int>> numa;
  for (std::size_t i = 0; i < devices_of(node); ++i) numa.push_back(numa_of_device(node, i));
  return numa;
}

/// By bit of a NumaMask: NUMA nodes that have devices, then those that have CPUs alone.
std::vector<int> numa_by_bit(const Node& node, const Wiring& wiring) {
  auto ids = wiring.numa_nodes();
  for (const auto& numa : node.numa)
    if (!numa.cpus.empty() && std::ranges::find(wiring.numa_nodes(), numa.id) == wiring.numa_nodes().end())
      ids.push_back(numa.id);
  ids.resize(std::min<std::size_t>(ids.size(), kNumaBits));
  return ids;
}

std::vector<std::vector<int>> cpus_by_bit(const Node& node, const std::vector<int>& ids) {
  std::vector<std::vector<int>> cpus;
  for (const auto id : ids) {
    const auto found = std::ranges::find(node.numa, id, &gpu::NumaNode::id);
    cpus.push_back(found == node.numa.end() ? std::vector<int>{} : found->cpus);
    std::ranges::sort(cpus.back());
  }
  return cpus;
}

/// Each NUMA node without devices goes to the one whose number is nearest: kernels number those of one socket
/// in a row. Of two that are as near, to the one that has fewer CPUs so far.
std::vector<NumaMask> share_out(const std::vector<int>& ids, std::size_t with_devices,
                                const std::vector<std::vector<int>>& cpus) {
  std::vector<NumaMask> beside;
  std::vector<std::size_t> has;
  for (std::size_t i = 0; i < std::min(with_devices, ids.size()); ++i) {
    beside.push_back(static_cast<NumaMask>(1U << i));
    has.push_back(cpus[i].size());
  }
  for (auto alone = beside.size(); alone < ids.size() && !beside.empty(); ++alone) {
    std::size_t nearest = 0;
    const auto order = [&](std::size_t i) { return std::pair(std::abs(ids[i] - ids[alone]), has[i]); };
    for (std::size_t i = 1; i < beside.size(); ++i)
      if (order(i) < order(nearest)) nearest = i;
    beside[nearest] = static_cast<NumaMask>(beside[nearest] | 1U << alone);
    has[nearest] += cpus[alone].size();
  }
  return beside;
}

}  // namespace

std::string fingerprint(const Node& node) {
  std::string text = node.inventory.driver_version + "\n";
  const auto out = std::back_inserter(text);
  for (std::size_t i = 0; i < devices_of(node); ++i) {
    const auto& device = node.inventory.devices[i];
    const auto capability = device.compute_capability.value_or(gpu::ComputeCapability{-1, -1});
    fmt::format_to(out, "{:?} {} {}.{} {} {}:", device.model, device.memory_bytes.value_or(0),
                   capability.major, capability.minor, device.ecc ? int{*device.ecc} : -1,
                   numa_of_device(node, i).value_or(-1));
    for (std::size_t j = i + 1; j < devices_of(node); ++j) {
      const auto link = link_of(node, i, j);
      fmt::format_to(out, " {}/{}", link.nvlinks, static_cast<int>(link.pcie));
    }
    text += '\n';
  }
  for (const auto& numa : node.numa) fmt::format_to(out, "{}: {}\n", numa.id, fmt::join(numa.cpus, ","));
  for (const auto& nic : node.nics) fmt::format_to(out, "{:?} {}\n", nic.name, nic.numa_node.value_or(-1));
  return text;
}

NodeKind make_node_kind(const Node& node, int id) {
  NodeKind kind{.id = id,
                .driver = node.inventory.driver_version,
                .wiring = Wiring(links_of(node), numa_of_devices(node)),
                .nics = node.nics};
  const auto count = devices_of(node);
  kind.all = first_devices(static_cast<int>(count));
  for (std::size_t i = 0; i < count; ++i) {
    const auto& device = node.inventory.devices[i];
    kind.devices.push_back({device.model, std::min(device.memory_bytes.value_or(0), kMostGpuMemory),
                            device.compute_capability, device.ecc, numa_of_device(node, i)});
    const auto& numa = kind.devices.back().numa_node;
    if (numa && std::ranges::find(node.nics, numa, &gpu::Nic::numa_node) != node.nics.end())
      kind.near_nic |= device_bit(static_cast<int>(i));
    for (std::size_t j = 0; j < i; ++j) kind.nvlinks = std::max(kind.nvlinks, link_of(node, j, i).nvlinks);
  }
  const auto numa = numa_by_bit(node, kind.wiring);
  kind.numa_cpus = cpus_by_bit(node, numa);
  kind.beside = share_out(numa, kind.wiring.numa_nodes().size(), kind.numa_cpus);
  std::ranges::sort(kind.nics, {}, &gpu::Nic::name);
  return kind;
}

NumaMask with_beside(const NodeKind& kind, NumaMask numa) {
  for (std::size_t i = 0; i < kind.beside.size(); ++i)
    if ((numa >> i & 1) != 0) numa = static_cast<NumaMask>(numa | kind.beside[i]);
  return numa;
}

std::vector<int> cpus_of(const NodeKind& kind, NumaMask numa) {
  std::vector<int> cpus;
  for (std::size_t i = 0; i < kind.numa_cpus.size(); ++i)
    if ((numa >> i & 1) != 0) cpus.insert(cpus.end(), kind.numa_cpus[i].begin(), kind.numa_cpus[i].end());
  std::ranges::sort(cpus);
  return cpus;
}

NumaMask numa_with_cpus(const NodeKind& kind, const std::vector<int>& cpus) {
  NumaMask mask = 0;
  for (std::size_t i = 0; i < kind.numa_cpus.size(); ++i) {
    const auto& numa = kind.numa_cpus[i];
    if (numa.empty()) continue;
    const auto begin = std::ranges::lower_bound(cpus, numa.front());
    const auto end = std::find_if(begin, cpus.end(), [&](int cpu) {
      return cpu > numa.back() || std::ranges::binary_search(numa, cpu);
    });
    if (end != cpus.end() && *end <= numa.back()) mask = static_cast<NumaMask>(mask | 1U << i);
  }
  return mask;
}

std::vector<std::string> nics_of(const NodeKind& kind, NumaMask numa) {
  std::vector<std::string> names;
  const auto& nodes = kind.wiring.numa_nodes();
  for (const auto& nic : kind.nics) {
    if (!nic.numa_node) continue;
    const auto bit = std::ranges::find(nodes, *nic.numa_node) - nodes.begin();
    if (bit < kNumaBits && (numa >> bit & 1) != 0) names.push_back(nic.name);
  }
  return names;
}

}  // namespace drover::placement

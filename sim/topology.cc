#include "sim/topology.h"

#include <algorithm>

namespace drover::sim {
namespace {

constexpr std::uint32_t kNvSwitch = 0x1af110de;
constexpr std::uint32_t kPowerNpu = 0x04ea1014;

void append_switch_links(const Profile& profile, std::size_t position, std::vector<LinkEnd>& ends) {
  const auto& row = profile.links[position];
  const auto& switches = profile.nvlink.switches;
  const int count = *std::max_element(row.begin(), row.end());
  for (int link = 0; link < count; ++link)
    ends.push_back({NVML_NVLINK_DEVICE_TYPE_SWITCH,
                    switches[static_cast<std::size_t>(link) % switches.size()], kNvSwitch,
                    static_cast<unsigned>(position)});
}

void append_peer_links(const Profile& profile, std::size_t position, std::vector<LinkEnd>& ends) {
  const auto first_link = [&](std::size_t from, std::size_t to) {
    int link = 0;
    for (std::size_t i = 0; i < to; ++i) link += profile.links[from][i];
    return static_cast<unsigned>(link);
  };
  for (std::size_t peer = 0; peer < profile.gpus.size(); ++peer) {
    const auto& gpu = profile.gpus[peer];
    for (int link = 0; link < profile.links[position][peer]; ++link)
      ends.push_back({NVML_NVLINK_DEVICE_TYPE_GPU, gpu.pci, gpu.model.pci_device,
                      first_link(peer, position) + static_cast<unsigned>(link)});
  }
}

}  // namespace

nvmlGpuTopologyLevel_t common_ancestor(const Gpu& a, const Gpu& b) {
  if (a.multi_gpu_board && a.board == b.board) return NVML_TOPOLOGY_INTERNAL;
  const auto [in_a, in_b] =
      std::mismatch(a.bridges.begin(), a.bridges.end(), b.bridges.begin(), b.bridges.end());
  const auto shared = in_a - a.bridges.begin();
  if (shared == 0) return a.numa == b.numa ? NVML_TOPOLOGY_NODE : NVML_TOPOLOGY_SYSTEM;
  if (shared == 1) return NVML_TOPOLOGY_HOSTBRIDGE;
  const bool behind_same_switch = in_a == a.bridges.end() && in_b == b.bridges.end();
  return behind_same_switch ? NVML_TOPOLOGY_SINGLE : NVML_TOPOLOGY_MULTIPLE;
}

std::vector<LinkEnd> link_ends(const Profile& profile, std::size_t position) {
  std::vector<LinkEnd> ends;
  if (profile.nvlink.switches.empty())
    append_peer_links(profile, position, ends);
  else
    append_switch_links(profile, position, ends);
  const auto& gpu = profile.gpus[position];
  for (int link = 0; link < gpu.cpu_links; ++link)
    ends.push_back({NVML_NVLINK_DEVICE_TYPE_IBMNPU,
                    {.domain = 4, .bus = 0, .device = static_cast<unsigned>(gpu.numa)},
                    kPowerNpu,
                    static_cast<unsigned>(link)});
  return ends;
}

bool joined_by_nvlink(const Profile& profile, std::size_t a, std::size_t b) {
  return profile.links[a][b] > 0;
}

const std::vector<int>& cpus_of(const Profile& profile, const Gpu& gpu) {
  const auto& nodes = profile.host.numa;
  return std::find_if(nodes.begin(), nodes.end(), [&](const NumaNode& node) { return node.id == gpu.numa; })
      ->cpus;
}

}  // namespace drover::sim

#include "gpu/links.h"

#include <algorithm>
#include <map>
#include <optional>

#include "gpu/query.h"

namespace drover::gpu {
namespace {

constexpr unsigned kNvidiaVendorId = 0x10de;

/// Where the active NVLinks of one GPU lead.
struct NvLinks {
  std::map<PciAddress, int> to_gpu;
  int to_switches = 0;
};

struct Remote {
  PciAddress address;
  unsigned vendor = 0;
};

template <typename PciInfo>
Remote remote_of(const PciInfo& info) {
  return {{info.domain, info.bus, info.device, 0}, info.pciDeviceId & 0xffffU};
}

std::optional<Remote> remote_end(Query& query, unsigned link) {
  const auto& f = query.functions();
  nvmlPciInfo_t info{};
  nvmlPciInfo_v2_t old_info{};
  if (f.nvlink_remote_pci_v2 != nullptr) {
    if (query.ask("nvmlDeviceGetNvLinkRemotePciInfo_v2", f.nvlink_remote_pci_v2, link, &info))
      return remote_of(info);
  } else if (query.ask("nvmlDeviceGetNvLinkRemotePciInfo", f.nvlink_remote_pci_v1, link, &old_info)) {
    return remote_of(old_info);
  }
  return std::nullopt;
}

bool is_gpu(const std::vector<Device>& devices, const PciAddress& address) {
  return std::any_of(devices.begin(), devices.end(),
                     [&](const auto& device) { return device.pci == address; });
}

/// Libraries before 470 do not tell the type of the remote end: then it is a switch when it is NVIDIA's and
/// no GPU. (The other end can also be a POWER CPU.)
bool leads_to_switch(Query& query, unsigned link, const Remote& remote, bool remote_is_gpu) {
  nvmlIntNvLinkDeviceType_t type{};
  if (query.ask("nvmlDeviceGetNvLinkRemoteDeviceType", query.functions().nvlink_remote_type, link, &type))
    return type == NVML_NVLINK_DEVICE_TYPE_SWITCH;
  return !remote_is_gpu && remote.vendor == kNvidiaVendorId;
}

NvLinks nvlinks_of(Query& query, const std::vector<Device>& devices) {
  NvLinks links;
  const auto state = query.functions().nvlink_state;
  for (unsigned link = 0; state != nullptr && link < NVML_NVLINK_MAX_LINKS; ++link) {
    nvmlEnableState_t active{};
    // A GPU has fewer links than NVML's maximum: numbers above are an invalid argument, and no problem.
    if (state(query.handle(), link, &active) != NVML_SUCCESS || active != NVML_FEATURE_ENABLED) continue;
    const auto remote = remote_end(query, link);
    if (!remote) continue;
    const bool remote_is_gpu = is_gpu(devices, remote->address);
    if (leads_to_switch(query, link, *remote, remote_is_gpu))
      ++links.to_switches;
    else if (remote_is_gpu)
      ++links.to_gpu[remote->address];
  }
  return links;
}

int nvlinks_between(const Device& a, const NvLinks& from_a, const Device& b, const NvLinks& from_b) {
  const auto direct = [](const NvLinks& links, const Device& device) {
    const auto found = device.pci ? links.to_gpu.find(*device.pci) : links.to_gpu.end();
    return found == links.to_gpu.end() ? 0 : found->second;
  };
  // One end may be silent (lost): the other one still knows.
  return std::max(direct(from_a, b), direct(from_b, a)) + std::min(from_a.to_switches, from_b.to_switches);
}

PcieLevel level_of(nvmlGpuTopologyLevel_t level) {
  switch (level) {
    case NVML_TOPOLOGY_INTERNAL:
      return PcieLevel::kSameBoard;
    case NVML_TOPOLOGY_SINGLE:
      return PcieLevel::kSwitch;
    case NVML_TOPOLOGY_MULTIPLE:
      return PcieLevel::kSwitches;
    case NVML_TOPOLOGY_HOSTBRIDGE:
      return PcieLevel::kHostBridge;
    case NVML_TOPOLOGY_NODE:
      return PcieLevel::kSameNuma;
    case NVML_TOPOLOGY_SYSTEM:
      return PcieLevel::kAcross;
  }
  return PcieLevel::kUnknown;
}

PcieLevel pcie_between(Query& query, const Device& a, nvmlDevice_t other, const Device& b,
                       const Kernel* kernel) {
  const auto& f = query.functions();
  if (query.handle() != nullptr && other != nullptr) {
    nvmlGpuTopologyLevel_t level{};
    if (query.ask("nvmlDeviceGetTopologyCommonAncestor", f.common_ancestor, other, &level))
      return level_of(level);
    int same = 0;
    if (query.ask("nvmlDeviceOnSameBoard", f.on_same_board, other, &same) && same != 0)
      return PcieLevel::kSameBoard;
  }
  if (a.board_id && a.board_id == b.board_id) return PcieLevel::kSameBoard;
  if (kernel != nullptr && a.pci && b.pci) return kernel->level(*a.pci, *b.pci);
  return PcieLevel::kUnknown;
}

}  // namespace

std::vector<std::vector<Link>> discover_links(const Nvml& nvml, const std::vector<nvmlDevice_t>& handles,
                                              std::vector<Device>& devices, const Kernel* kernel) {
  const auto count = devices.size();
  std::vector<NvLinks> nvlinks(count);
  for (std::size_t i = 0; i < count; ++i) {
    Query query(nvml, handles[i], devices[i]);
    if (handles[i] != nullptr) nvlinks[i] = nvlinks_of(query, devices);
  }
  std::vector<std::vector<Link>> links(count, std::vector<Link>(count));
  for (std::size_t i = 0; i < count; ++i) {
    Query query(nvml, handles[i], devices[i]);
    links[i][i].pcie = PcieLevel::kSameDevice;
    for (std::size_t j = i + 1; j < count; ++j) {
      links[i][j] = {nvlinks_between(devices[i], nvlinks[i], devices[j], nvlinks[j]),
                     pcie_between(query, devices[i], handles[j], devices[j], kernel)};
      links[j][i] = links[i][j];
    }
  }
  return links;
}

}  // namespace drover::gpu

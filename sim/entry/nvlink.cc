// NVLink, link by link, and the fabric that it makes.

#include <algorithm>
#include <array>
#include <iterator>

#include "sim/entry/call.h"
#include "sim/topology.h"

using namespace drover::sim;

namespace {

/// Runs `body(const Call&, const LinkEnd&)` for an active link. Cards without NVLink answer "not supported",
/// and link numbers beyond the active ones an invalid argument.
template <typename Body>
nvmlReturn_t with_link(const char* function, nvmlDevice_t device, unsigned int link, Body body) noexcept {
  return with_device(function, device, [&](const Call& call) {
    if (link >= NVML_NVLINK_MAX_LINKS) return NVML_ERROR_INVALID_ARGUMENT;
    const auto ends = link_ends(call.machine.profile(), call.device.position);
    return link < ends.size() ? body(call, ends[link]) : NVML_ERROR_NOT_SUPPORTED;
  });
}

/// Fills what all versions of the structure have.
template <typename Info>
nvmlReturn_t describe_fabric(const char* function, nvmlDevice_t device, Info* info) noexcept {
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return with_device(function, device, [&](const Call& call) {
    const auto& fabric = call.machine.profile().fabric;
    if (!fabric) return NVML_ERROR_NOT_SUPPORTED;
    std::ranges::copy(fabric->cluster, std::begin(info->clusterUuid));
    info->status = NVML_SUCCESS;
    info->cliqueId = fabric->clique;
    info->state = NVML_GPU_FABRIC_STATE_COMPLETED;
    return NVML_SUCCESS;
  });
}

template <typename PciInfo>
void fill_remote(const LinkEnd& end, PciInfo& pci) {
  pci.domain = end.pci.domain;
  pci.bus = end.pci.bus;
  pci.device = end.pci.device;
  pci.pciDeviceId = end.pci_device;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t* active) {
  return with_link(__func__, device, link,
                   [&](const Call&, const LinkEnd&) { return answer(active, NVML_FEATURE_ENABLED); });
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link, unsigned int* version) {
  return with_link(__func__, device, link, [&](const Call& call, const LinkEnd&) {
    static constexpr std::array kVersions{NVML_NVLINK_VERSION_1_0, NVML_NVLINK_VERSION_2_0,
                                          NVML_NVLINK_VERSION_3_0, NVML_NVLINK_VERSION_4_0};
    return answer(version, kVersions.at(static_cast<std::size_t>(call.machine.profile().nvlink.version) - 1));
  });
}

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link,
                                           nvmlNvLinkCapability_t capability, unsigned int* supported) {
  return with_link(__func__, device, link, [&](const Call&, const LinkEnd& end) {
    const bool to_cpu = end.type == NVML_NVLINK_DEVICE_TYPE_IBMNPU;
    switch (capability) {
      case NVML_NVLINK_CAP_P2P_SUPPORTED:
      case NVML_NVLINK_CAP_P2P_ATOMICS:
        return answer(supported, !to_cpu);
      case NVML_NVLINK_CAP_SYSMEM_ACCESS:
      case NVML_NVLINK_CAP_SYSMEM_ATOMICS:
      case NVML_NVLINK_CAP_VALID:
        return answer(supported, true);
      case NVML_NVLINK_CAP_SLI_BRIDGE:
        return answer(supported, false);
      default:
        return NVML_ERROR_INVALID_ARGUMENT;
    }
  });
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link, nvmlPciInfo_v2_t* pci) {
  return with_link(__func__, device, link, [&](const Call&, const LinkEnd& end) {
    if (pci == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *pci = {};
    fill_remote(end, *pci);
    copy_text(pci->busId, to_string(end.pci, 4));
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t* pci) {
  return with_link(__func__, device, link, [&](const Call&, const LinkEnd& end) {
    if (pci == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *pci = {};
    fill_remote(end, *pci);
    copy_text(pci->busIdLegacy, to_string(end.pci, 4));
    copy_text(pci->busId, to_string(end.pci));
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                 nvmlIntNvLinkDeviceType_t* type) {
  return with_link(__func__, device, link,
                   [&](const Call&, const LinkEnd& end) { return answer(type, end.type); });
}

nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link,
                                             nvmlNvLinkErrorCounter_t counter, unsigned long long* value) {
  return with_link(__func__, device, link, [&](const Call&, const LinkEnd&) {
    return counter < 0 || counter >= NVML_NVLINK_ERROR_COUNT ? NVML_ERROR_INVALID_ARGUMENT : answer(value, 0);
  });
}

nvmlReturn_t nvmlDeviceResetNvLinkErrorCounters(nvmlDevice_t device, unsigned int link) {
  return with_link(__func__, device, link, [](const Call&, const LinkEnd&) { return NVML_SUCCESS; });
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t* info) {
  return describe_fabric(__func__, device, info);
}

// What the later structures add, health, is not known.
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t* info) {
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (info->version == NVML_STRUCT_VERSION(GpuFabricInfo, 2)) {
    auto& older = reinterpret_cast<nvmlGpuFabricInfo_v2_t&>(*info);
    older.healthMask = 0;
    return describe_fabric(__func__, device, &older);
  }
  if (info->version != NVML_STRUCT_VERSION(GpuFabricInfo, 3)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  info->healthMask = 0;
  info->healthSummary = 0;
  return describe_fabric(__func__, device, info);
}

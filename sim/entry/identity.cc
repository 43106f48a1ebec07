// Which GPUs there are, and what each is.

#include <array>

#include "sim/entry/mig_call.h"

using namespace drover::sim;

namespace {

/// Hands out the device that `matches(const nvmlDevice_st&)` picks.
template <typename Matches>
nvmlReturn_t find_device(const char* function, nvmlDevice_t* out, nvmlReturn_t otherwise,
                         Matches matches) noexcept {
  return with_session([&](const Session& session) {
    if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    for (auto* device : session.machine->listed())
      if (matches(*device))
        return on_device(function, session, *device, [&](const Call&) { return answer(out, device); });
    return otherwise;
  });
}

nvmlReturn_t by_index(const char* function, unsigned int index, nvmlDevice_t* out) noexcept {
  unsigned int place = 0;
  return find_device(function, out, NVML_ERROR_INVALID_ARGUMENT,
                     [&](const nvmlDevice_st&) { return place++ == index; });
}

nvmlReturn_t by_pci(const char* function, const char* bus_id, nvmlDevice_t* out) noexcept {
  if (bus_id == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return find_device(function, out, NVML_ERROR_NOT_FOUND, [&](const nvmlDevice_st& device) {
    const auto address = parse_pci_address(bus_id);
    return address && *address == device.gpu->pci;
  });
}

nvmlReturn_t mig_by_uuid(const char* function, const std::string& uuid, nvmlDevice_t* out) noexcept {
  return with_session([&](const Session& session) {
    const auto state = session.machine->mig().current();
    for (auto* device : session.machine->listed())
      for (const auto& instance : (*state)[device->position].instances)
        for (const auto& compute : instance.compute)
          if (mig_uuid(*device->gpu, instance, compute) == uuid)
            return on_device(function, session, *device, [&](const Call&) {
              auto& handles = session.machine->mig_handles().devices;
              return answer(out, handles.of({device->position, instance.id, compute.id}));
            });
    return NVML_ERROR_NOT_FOUND;
  });
}

template <typename PciInfo>
void fill_address(const Call& call, PciInfo& pci) {
  pci.domain = call.gpu.pci.domain;
  pci.bus = call.gpu.pci.bus;
  pci.device = call.gpu.pci.device;
  pci.pciDeviceId = call.model.pci_device;
  pci.pciSubSystemId = call.model.pci_subsystem;
}

nvmlReturn_t old_pci_info(const char* function, nvmlDevice_t handle, nvmlPciInfo_v2_t* out) noexcept {
  return get(function, handle, out, [](const Call& call) {
    nvmlPciInfo_v2_t pci{};
    fill_address(call, pci);
    copy_text(pci.busId, to_string(call.gpu.pci, 4));
    return pci;
  });
}

nvmlBrandType_t brand_of(const std::string& brand) {
  if (brand == "tesla") return NVML_BRAND_TESLA;
  return brand == "geforce" ? NVML_BRAND_GEFORCE : NVML_BRAND_NVIDIA;
}

unsigned int architecture_of(const std::string& name) {
  static constexpr std::array kNames{"kepler", "maxwell", "pascal", "volta",
                                     "turing", "ampere",  "ada",    "hopper"};
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  return NVML_DEVICE_ARCH_KEPLER + static_cast<unsigned int>(found - kNames.begin());
}

}  // namespace

nvmlReturn_t nvmlDeviceGetCount(unsigned int* count) {
  return with_session(
      [&](const Session& session) { return answer(count, session.machine->listed().size()); });
}
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* count) {
  return nvmlDeviceGetCount(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t* device) {
  return by_index(__func__, index, device);
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device) {
  return by_index(__func__, index, device);
}
nvmlReturn_t nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* device) {
  if (serial == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return find_device(__func__, device, NVML_ERROR_NOT_FOUND,
                     [&](const nvmlDevice_st& candidate) { return candidate.gpu->serial == serial; });
}
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  if (uuid == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (std::string_view(uuid).starts_with("MIG-")) return mig_by_uuid(__func__, uuid, device);
  return find_device(__func__, device, NVML_ERROR_NOT_FOUND,
                     [&](const nvmlDevice_st& candidate) { return candidate.gpu->uuid == uuid; });
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* bus_id, nvmlDevice_t* device) {
  return by_pci(__func__, bus_id, device);
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, nvmlDevice_t* device) {
  return by_pci(__func__, bus_id, device);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned int length) {
  return with_device_or_part(
      __func__, device, [&](const Call& call) { return answer_text(name, length, call.model.name); },
      [&](const Call& call, const MigPart& part) {
        return answer_text(name, length, call.model.name + " " + mig_name(part.instance, part.compute));
      });
}
nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t* brand) {
  return get(__func__, device, brand, [](const Call& call) { return brand_of(call.model.brand); });
}
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index) {
  return with_device_or_part(
      __func__, device, [&](const Call& call) { return answer(index, call.machine.index_of(call.device)); },
      [&](const Call& call, const MigPart& part) {
        const auto gpu = mig_of(call);
        unsigned int before = 0;
        for (const auto& instance : gpu.instances)
          for (const auto& compute : instance.compute) {
            if (instance.id == part.instance.id && compute.id == part.compute.id)
              return answer(index, before);
            ++before;
          }
        return NVML_ERROR_NOT_FOUND;
      });
}
nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char* serial, unsigned int length) {
  return get_text(__func__, device, serial, length, [](const Call& call) { return call.gpu.serial; });
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned int length) {
  return with_device_or_part(
      __func__, device, [&](const Call& call) { return answer_text(uuid, length, call.gpu.uuid); },
      [&](const Call& call, const MigPart& part) {
        return answer_text(uuid, length, mig_uuid(call.gpu, part.instance, part.compute));
      });
}
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int* minor) {
  return get(__func__, device, minor, [](const Call& call) { return call.gpu.minor; });
}
nvmlReturn_t nvmlDeviceGetModuleId(nvmlDevice_t device, unsigned int* id) {
  return get(__func__, device, id, [](const Call& call) { return call.device.position + 1; });
}
nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char* number, unsigned int length) {
  return get_text(__func__, device, number, length, [](const Call& call) { return call.model.part_number; });
}
nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char* version, unsigned int length) {
  return get_text(__func__, device, version, length, [](const Call& call) { return call.model.vbios; });
}

nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, nvmlInforomObject_t object, char* version,
                                         unsigned int length) {
  return with_device(__func__, device, [&](const Call& call) {
    if (object < 0 || object >= NVML_INFOROM_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
    const bool has = object == NVML_INFOROM_OEM || (object == NVML_INFOROM_ECC && call.model.ecc);
    return answer_text(version, length, !has ? "" : object == NVML_INFOROM_OEM ? "1.1" : "6.16");
  });
}
nvmlReturn_t nvmlDeviceGetInforomImageVersion(nvmlDevice_t device, char* version, unsigned int length) {
  return get_text(__func__, device, version, length, [](const Call& call) { return call.model.inforom; });
}
nvmlReturn_t nvmlDeviceGetInforomConfigurationChecksum(nvmlDevice_t device, unsigned int* checksum) {
  return get(__func__, device, checksum, [](const Call& call) { return call.model.pci_device; });
}
nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device) {
  return with_device(__func__, device, [](const Call&) { return NVML_SUCCESS; });
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_v2_t* pci) {
  return old_pci_info(__func__, device, pci);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t* pci) {
  return old_pci_info(__func__, device, pci);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return get(__func__, device, pci, [](const Call& call) {
    nvmlPciInfo_t info{};
    fill_address(call, info);
    copy_text(info.busIdLegacy, to_string(call.gpu.pci, 4));
    copy_text(info.busId, to_string(call.gpu.pci));
    return info;
  });
}
nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_v1_t* pci) {
  return with_device(__func__, device, [&](const Call& call) {
    if (pci == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    if (pci->version != NVML_STRUCT_VERSION(PciInfoExt, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    fill_address(call, *pci);
    pci->baseClass = 0x03;
    pci->subClass = call.model.brand == "geforce" ? 0x00 : 0x02;
    copy_text(pci->busId, to_string(call.gpu.pci));
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int* board) {
  return get(__func__, device, board, [](const Call& call) { return call.gpu.board; });
}
nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned int* multi_gpu) {
  return get(__func__, device, multi_gpu, [](const Call& call) { return call.gpu.multi_gpu_board; });
}
nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t a, nvmlDevice_t b, int* same) {
  return with_device(__func__, a, [&](const Call& call) {
    const auto* other = call.machine.find(b);
    return other == nullptr ? NVML_ERROR_INVALID_ARGUMENT : answer(same, other->gpu->board == call.gpu.board);
  });
}
nvmlReturn_t nvmlDeviceGetBridgeChipInfo(nvmlDevice_t device, nvmlBridgeChipHierarchy_t* hierarchy) {
  return with_device(__func__, device, [&](const Call& call) {
    if (hierarchy == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    if (!call.gpu.multi_gpu_board) return NVML_ERROR_NOT_SUPPORTED;
    hierarchy->bridgeCount = 1;
    hierarchy->bridgeChipInfo[0] = {NVML_BRIDGE_CHIP_PLX, 0};
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor) {
  return with_device(__func__, device, [&](const Call& call) {
    if (major == nullptr || minor == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *major = call.model.compute_major;
    *minor = call.model.compute_minor;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t* architecture) {
  return get(__func__, device, architecture,
             [](const Call& call) { return architecture_of(call.model.architecture); });
}
nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int* cores) {
  return get(__func__, device, cores, [](const Call& call) { return call.model.cores; });
}
nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_t device, nvmlBusType_t* type) {
  return get(__func__, device, type, [](const Call&) { return NVML_BUS_TYPE_PCIE; });
}
nvmlReturn_t nvmlDeviceGetIrqNum(nvmlDevice_t device, unsigned int* irq) {
  return get(__func__, device, irq, [](const Call& call) { return 64 + call.device.position; });
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return get(__func__, device, mode, [](const Call&) { return NVML_FEATURE_ENABLED; });
}
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t* mode) {
  return with_device_or_part(
      __func__, device, [&](const Call&) { return answer(mode, NVML_COMPUTEMODE_DEFAULT); },
      [&](const Call&, const MigPart&) { return answer(mode, NVML_COMPUTEMODE_DEFAULT); });
}
nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return get(__func__, device, mode, [](const Call&) { return NVML_FEATURE_DISABLED; });
}
nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, nvmlEnableState_t* active) {
  return get(__func__, device, active, [](const Call&) { return NVML_FEATURE_DISABLED; });
}
nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, nvmlGpuVirtualizationMode_t* mode) {
  return get(__func__, device, mode, [](const Call&) { return NVML_GPU_VIRTUALIZATION_MODE_NONE; });
}

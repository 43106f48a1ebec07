#include "gpu/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <initializer_list>
#include <utility>

namespace drover::gpu {
namespace {

constexpr const char* kDriverHint = "install the NVIDIA driver (340.29 or newer), or try --simulate PROFILE";

/// Fills `slot` with the first of `names` that the library has.
template <typename Function>
void resolve(void* library, Function& slot, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    // POSIX allows the conversion of dlsym's answer to a function pointer.
    slot = reinterpret_cast<Function>(::dlsym(library, name));
    if (slot != nullptr) return;
  }
}

void resolve_mig(void* library, NvmlFunctions& f) {
  resolve(library, f.gpu_instance_profile, {"nvmlDeviceGetGpuInstanceProfileInfo"});
  resolve(library, f.gpu_instance_profile_v, {"nvmlDeviceGetGpuInstanceProfileInfoV"});
  resolve(library, f.mig_possible_placements,
          {"nvmlDeviceGetGpuInstancePossiblePlacements_v2", "nvmlDeviceGetGpuInstancePossiblePlacements"});
  resolve(library, f.gpu_instances, {"nvmlDeviceGetGpuInstances"});
  resolve(library, f.gpu_instance_info, {"nvmlGpuInstanceGetInfo"});
  resolve(library, f.create_gpu_instance, {"nvmlDeviceCreateGpuInstanceWithPlacement"});
  resolve(library, f.gpu_instance_destroy, {"nvmlGpuInstanceDestroy"});
  resolve(library, f.compute_instance_profile, {"nvmlGpuInstanceGetComputeInstanceProfileInfo"});
  resolve(library, f.compute_instances, {"nvmlGpuInstanceGetComputeInstances"});
  resolve(library, f.compute_instance_info, {"nvmlComputeInstanceGetInfo_v2", "nvmlComputeInstanceGetInfo"});
  resolve(library, f.create_compute_instance, {"nvmlGpuInstanceCreateComputeInstance"});
  resolve(library, f.compute_instance_destroy, {"nvmlComputeInstanceDestroy"});
  resolve(library, f.mig_device_by_index, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  resolve(library, f.gpu_instance_id, {"nvmlDeviceGetGpuInstanceId"});
  resolve(library, f.compute_instance_id, {"nvmlDeviceGetComputeInstanceId"});
}

void resolve_usage(void* library, NvmlFunctions& f) {
  resolve(library, f.utilization, {"nvmlDeviceGetUtilizationRates"});
  resolve(library, f.encoder_utilization, {"nvmlDeviceGetEncoderUtilization"});
  resolve(library, f.decoder_utilization, {"nvmlDeviceGetDecoderUtilization"});
  resolve(library, f.memory_info_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  resolve(library, f.set_memory_limits, {"nvmlDeviceSetMemoryLimits_v1"});
  resolve(library, f.memory_limits, {"nvmlDeviceGetMemoryLimits_v1"});
  resolve(library, f.clock_info, {"nvmlDeviceGetClockInfo"});
  resolve(library, f.temperature, {"nvmlDeviceGetTemperature"});
  resolve(library, f.power_usage, {"nvmlDeviceGetPowerUsage"});
  resolve(library, f.total_energy, {"nvmlDeviceGetTotalEnergyConsumption"});
  resolve(library, f.pcie_replays, {"nvmlDeviceGetPcieReplayCounter"});
  resolve(library, f.pcie_throughput, {"nvmlDeviceGetPcieThroughput"});
  resolve(library, f.process_utilization, {"nvmlDeviceGetProcessUtilization"});
  constexpr std::array kinds{"Compute", "Graphics", "MPSCompute"};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto name = fmt::format("nvmlDeviceGet{}RunningProcesses", kinds[i]);
    resolve(library, f.processes_v2[i], {(name + "_v3").c_str(), (name + "_v2").c_str()});
    resolve(library, f.processes_v1[i], {name.c_str()});
  }
}

NvmlFunctions resolve_all(void* library) {
  NvmlFunctions f;
  resolve(library, f.init, {"nvmlInit_v2", "nvmlInit"});
  resolve(library, f.shutdown, {"nvmlShutdown"});
  resolve(library, f.driver_version, {"nvmlSystemGetDriverVersion"});
  resolve(library, f.device_count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  resolve(library, f.device_by_index, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  resolve(library, f.error_string, {"nvmlErrorString"});
  resolve(library, f.cuda_version, {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"});
  resolve(library, f.uuid, {"nvmlDeviceGetUUID"});
  resolve(library, f.name, {"nvmlDeviceGetName"});
  resolve(library, f.brand, {"nvmlDeviceGetBrand"});
  resolve(library, f.serial, {"nvmlDeviceGetSerial"});
  resolve(library, f.minor_number, {"nvmlDeviceGetMinorNumber"});
  resolve(library, f.pci_info_v3, {"nvmlDeviceGetPciInfo_v3"});
  resolve(library, f.pci_info_v2, {"nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"});
  resolve(library, f.board_id, {"nvmlDeviceGetBoardId"});
  resolve(library, f.memory_info, {"nvmlDeviceGetMemoryInfo"});
  resolve(library, f.compute_capability, {"nvmlDeviceGetCudaComputeCapability"});
  resolve(library, f.ecc_mode, {"nvmlDeviceGetEccMode"});
  resolve(library, f.mig_mode, {"nvmlDeviceGetMigMode"});
  resolve(library, f.cpu_affinity, {"nvmlDeviceGetCpuAffinity"});
  resolve(library, f.memory_affinity, {"nvmlDeviceGetMemoryAffinity"});
  resolve(library, f.common_ancestor, {"nvmlDeviceGetTopologyCommonAncestor"});
  resolve(library, f.on_same_board, {"nvmlDeviceOnSameBoard"});
  resolve(library, f.nvlink_state, {"nvmlDeviceGetNvLinkState"});
  resolve(library, f.nvlink_remote_type, {"nvmlDeviceGetNvLinkRemoteDeviceType"});
  resolve(library, f.nvlink_remote_pci_v2, {"nvmlDeviceGetNvLinkRemotePciInfo_v2"});
  resolve(library, f.nvlink_remote_pci_v1, {"nvmlDeviceGetNvLinkRemotePciInfo"});
  resolve(library, f.fabric_info, {"nvmlDeviceGetGpuFabricInfo"});
  resolve(library, f.device_by_pci, {"nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId"});
  resolve(library, f.total_ecc_errors, {"nvmlDeviceGetTotalEccErrors"});
  resolve(library, f.retired_pages_pending, {"nvmlDeviceGetRetiredPagesPendingStatus"});
  resolve(library, f.remapped_rows, {"nvmlDeviceGetRemappedRows"});
  resolve(library, f.field_values, {"nvmlDeviceGetFieldValues"});
  resolve(library, f.event_set_create, {"nvmlEventSetCreate"});
  resolve(library, f.event_set_free, {"nvmlEventSetFree"});
  resolve(library, f.event_set_wait_v2, {"nvmlEventSetWait_v2"});
  resolve(library, f.event_set_wait_v1, {"nvmlEventSetWait"});
  resolve(library, f.supported_event_types, {"nvmlDeviceGetSupportedEventTypes"});
  resolve(library, f.register_events, {"nvmlDeviceRegisterEvents"});
  resolve(library, f.device_by_uuid, {"nvmlDeviceGetHandleByUUID"});
  resolve_mig(library, f);
  resolve_usage(library, f);
  return f;
}

/// The name of an essential function that is missing, or nullptr.
const char* missing_essential(const NvmlFunctions& f) {
  if (f.init == nullptr) return "nvmlInit";
  if (f.shutdown == nullptr) return "nvmlShutdown";
  if (f.driver_version == nullptr) return "nvmlSystemGetDriverVersion";
  if (f.device_count == nullptr) return "nvmlDeviceGetCount";
  if (f.device_by_index == nullptr) return "nvmlDeviceGetHandleByIndex";
  return nullptr;
}

unsigned next_number(std::string_view& version) {
  unsigned number = 0;
  const auto* end = version.data() + version.size();
  const auto [stop, error] = std::from_chars(version.data(), end, number);
  version.remove_prefix(static_cast<std::size_t>(stop - version.data()));
  if (!version.empty()) version.remove_prefix(1);
  return error == std::errc() ? number : 0;
}

}  // namespace

std::uint64_t unsigned_value(const nvmlFieldValue_t& field) {
  switch (field.valueType) {
    case NVML_VALUE_TYPE_UNSIGNED_INT:
      return field.value.uiVal;
    case NVML_VALUE_TYPE_UNSIGNED_LONG:
      return field.value.ulVal;
    default:
      return field.value.ullVal;
  }
}

bool older_driver(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    const auto left = next_number(a);
    const auto right = next_number(b);
    if (left != right) return left < right;
  }
  return false;
}

Result<Nvml> Nvml::load(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const std::string reason = ::dlerror();
    // A library that needs another one which is missing starts with that one's name.
    if (reason.starts_with(library + ":") && reason.find("No such file") != std::string::npos)
      return fail(ErrorKind::kNotFound,
                  fmt::format("NVIDIA's management library '{}' is not on this machine", library),
                  kDriverHint);
    return fail(ErrorKind::kUnavailable, fmt::format("Failed to load '{}': {}", library, reason),
                "reinstall the NVIDIA driver, for this machine's architecture");
  }
  Nvml nvml(handle);
  DROVER_CHECK_OK(nvml.initialise(library));
  return nvml;
}

Status Nvml::initialise(const std::string& name) {
  functions_ = resolve_all(library_);
  if (const char* missing = missing_essential(functions_))
    return fail(ErrorKind::kUnsupported, fmt::format("'{}' has no function '{}'", name, missing),
                "it is no NVIDIA management library, or a very old one: install driver 340.29 or newer");
  if (const auto code = functions_.init(); code != NVML_SUCCESS)
    return fail(ErrorKind::kUnavailable, fmt::format("'{}' does not start: {}", name, error_text(code)),
                code == NVML_ERROR_LIB_RM_VERSION_MISMATCH
                    ? "the library and the kernel module are of different versions: reboot, or reload it"
                    : "check that the kernel module 'nvidia' is loaded (lsmod, dmesg)");
  initialised_ = true;
  std::array<char, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE> version{};
  if (const auto code = functions_.driver_version(version.data(), version.size()); code != NVML_SUCCESS)
    return fail(ErrorKind::kUnavailable,
                fmt::format("'{}' does not tell the driver's version: {}", name, error_text(code)),
                kDriverHint);
  version.back() = '\0';
  driver_version_ = version.data();
  if (older_driver(driver_version_, kOldestDriver))
    return fail(ErrorKind::kUnsupported,
                fmt::format("NVIDIA driver {} is too old: {} is the oldest that works", driver_version_,
                            kOldestDriver),
                "install a newer driver");
  return {};
}

ErrorKind error_kind(nvmlReturn_t code) {
  switch (code) {
    case NVML_ERROR_NOT_SUPPORTED:
    case NVML_ERROR_FUNCTION_NOT_FOUND:
      return ErrorKind::kUnsupported;
    case NVML_ERROR_NO_PERMISSION:
      return ErrorKind::kPermissionDenied;
    case NVML_ERROR_IN_USE:
    case NVML_ERROR_INSUFFICIENT_RESOURCES:
      return ErrorKind::kConflict;
    default:
      return ErrorKind::kUnavailable;
  }
}

std::string Nvml::error_text(nvmlReturn_t code) const {
  const char* text = functions_.error_string != nullptr ? functions_.error_string(code) : nullptr;
  return text != nullptr ? text : fmt::format("NVML error {}", static_cast<int>(code));
}

Nvml::Nvml(Nvml&& other) noexcept
    : library_(std::exchange(other.library_, nullptr)),
      initialised_(std::exchange(other.initialised_, false)),
      functions_(other.functions_),
      driver_version_(std::move(other.driver_version_)) {}

Nvml& Nvml::operator=(Nvml&& other) noexcept {
  std::swap(library_, other.library_);
  std::swap(initialised_, other.initialised_);
  std::swap(functions_, other.functions_);
  std::swap(driver_version_, other.driver_version_);
  return *this;
}

Nvml::~Nvml() {
  if (initialised_) functions_.shutdown();
  if (library_ != nullptr) ::dlclose(library_);
}

}  // namespace drover::gpu

#pragma once

// NVIDIA's management library, loaded at run time: the same binary runs where there is no GPU, no driver and
// no library. Owns the library: loaded and initialised by load(), shut down and unloaded by the destructor.
// Every function but the essential ones may be missing (nullptr); callers check. NVML itself is thread safe,
// so a const Nvml may be used from several threads.
//
//   auto nvml = Nvml::load();                      // or Nvml::load(simulation.nvml_library)
//   auto inventory = discover(nvml, {});           // takes the error too, and says it

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "gpu/nvml_abi.h"

namespace drover::gpu {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";
/// The first driver whose library has what Drover needs.
inline constexpr const char* kOldestDriver = "340.29";

/// What Drover calls. A newer revision of a function is taken where the library has it and the arguments are
/// the same; where they differ both stand here.
struct NvmlFunctions {
  decltype(&::nvmlInit_v2) init = nullptr;
  decltype(&::nvmlShutdown) shutdown = nullptr;
  decltype(&::nvmlSystemGetDriverVersion) driver_version = nullptr;
  decltype(&::nvmlDeviceGetCount_v2) device_count = nullptr;
  decltype(&::nvmlDeviceGetHandleByIndex_v2) device_by_index = nullptr;
  // From here on: missing in some libraries.
  decltype(&::nvmlErrorString) error_string = nullptr;
  decltype(&::nvmlSystemGetCudaDriverVersion_v2) cuda_version = nullptr;
  decltype(&::nvmlDeviceGetUUID) uuid = nullptr;
  decltype(&::nvmlDeviceGetName) name = nullptr;
  decltype(&::nvmlDeviceGetBrand) brand = nullptr;
  decltype(&::nvmlDeviceGetSerial) serial = nullptr;
  decltype(&::nvmlDeviceGetMinorNumber) minor_number = nullptr;
  decltype(&::nvmlDeviceGetPciInfo_v3) pci_info_v3 = nullptr;
  decltype(&::nvmlDeviceGetPciInfo_v2) pci_info_v2 = nullptr;
  decltype(&::nvmlDeviceGetBoardId) board_id = nullptr;
  decltype(&::nvmlDeviceGetMemoryInfo) memory_info = nullptr;
  decltype(&::nvmlDeviceGetCudaComputeCapability) compute_capability = nullptr;
  decltype(&::nvmlDeviceGetEccMode) ecc_mode = nullptr;
  decltype(&::nvmlDeviceGetMigMode) mig_mode = nullptr;
  decltype(&::nvmlDeviceGetCpuAffinity) cpu_affinity = nullptr;
  decltype(&::nvmlDeviceGetMemoryAffinity) memory_affinity = nullptr;
  decltype(&::nvmlDeviceGetTopologyCommonAncestor) common_ancestor = nullptr;
  decltype(&::nvmlDeviceOnSameBoard) on_same_board = nullptr;
  decltype(&::nvmlDeviceGetNvLinkState) nvlink_state = nullptr;
  decltype(&::nvmlDeviceGetNvLinkRemoteDeviceType) nvlink_remote_type = nullptr;
  decltype(&::nvmlDeviceGetNvLinkRemotePciInfo_v2) nvlink_remote_pci_v2 = nullptr;
  decltype(&::nvmlDeviceGetNvLinkRemotePciInfo) nvlink_remote_pci_v1 = nullptr;
  decltype(&::nvmlDeviceGetGpuFabricInfo) fabric_info = nullptr;
  decltype(&::nvmlDeviceGetHandleByPciBusId_v2) device_by_pci = nullptr;
  decltype(&::nvmlDeviceGetTotalEccErrors) total_ecc_errors = nullptr;
  decltype(&::nvmlDeviceGetRetiredPagesPendingStatus) retired_pages_pending = nullptr;
  decltype(&::nvmlDeviceGetRemappedRows) remapped_rows = nullptr;
  decltype(&::nvmlDeviceGetFieldValues) field_values = nullptr;
  decltype(&::nvmlEventSetCreate) event_set_create = nullptr;
  decltype(&::nvmlEventSetFree) event_set_free = nullptr;
  decltype(&::nvmlEventSetWait_v2) event_set_wait_v2 = nullptr;
  decltype(&::nvmlEventSetWait) event_set_wait_v1 = nullptr;
  decltype(&::nvmlDeviceGetSupportedEventTypes) supported_event_types = nullptr;
  decltype(&::nvmlDeviceRegisterEvents) register_events = nullptr;
  decltype(&::nvmlDeviceGetHandleByUUID) device_by_uuid = nullptr;
  // Of libraries that know MIG.
  decltype(&::nvmlDeviceGetGpuInstanceProfileInfo) gpu_instance_profile = nullptr;
  decltype(&::nvmlDeviceGetGpuInstanceProfileInfoV) gpu_instance_profile_v = nullptr;
  decltype(&::nvmlDeviceGetGpuInstancePossiblePlacements_v2) mig_possible_placements = nullptr;
  decltype(&::nvmlDeviceGetGpuInstances) gpu_instances = nullptr;
  decltype(&::nvmlGpuInstanceGetInfo) gpu_instance_info = nullptr;
  decltype(&::nvmlDeviceCreateGpuInstanceWithPlacement) create_gpu_instance = nullptr;
  decltype(&::nvmlGpuInstanceDestroy) gpu_instance_destroy = nullptr;
  decltype(&::nvmlGpuInstanceGetComputeInstanceProfileInfo) compute_instance_profile = nullptr;
  decltype(&::nvmlGpuInstanceGetComputeInstances) compute_instances = nullptr;
  decltype(&::nvmlComputeInstanceGetInfo_v2) compute_instance_info = nullptr;
  decltype(&::nvmlGpuInstanceCreateComputeInstance) create_compute_instance = nullptr;
  decltype(&::nvmlComputeInstanceDestroy) compute_instance_destroy = nullptr;
  decltype(&::nvmlDeviceGetMigDeviceHandleByIndex) mig_device_by_index = nullptr;
  decltype(&::nvmlDeviceGetGpuInstanceId) gpu_instance_id = nullptr;
  decltype(&::nvmlDeviceGetComputeInstanceId) compute_instance_id = nullptr;
  // What the GPU does.
  decltype(&::nvmlDeviceGetUtilizationRates) utilization = nullptr;
  decltype(&::nvmlDeviceGetEncoderUtilization) encoder_utilization = nullptr;
  decltype(&::nvmlDeviceGetDecoderUtilization) decoder_utilization = nullptr;
  decltype(&::nvmlDeviceGetMemoryInfo_v2) memory_info_v2 = nullptr;
  decltype(&::nvmlDeviceSetMemoryLimits_v1) set_memory_limits = nullptr;
  decltype(&::nvmlDeviceGetMemoryLimits_v1) memory_limits = nullptr;
  decltype(&::nvmlDeviceGetClockInfo) clock_info = nullptr;
  decltype(&::nvmlDeviceGetTemperature) temperature = nullptr;
  decltype(&::nvmlDeviceGetPowerUsage) power_usage = nullptr;
  decltype(&::nvmlDeviceGetTotalEnergyConsumption) total_energy = nullptr;
  decltype(&::nvmlDeviceGetPcieReplayCounter) pcie_replays = nullptr;
  decltype(&::nvmlDeviceGetPcieThroughput) pcie_throughput = nullptr;
  decltype(&::nvmlDeviceGetProcessUtilization) process_utilization = nullptr;
  // Its processes by what they do: computing, graphics, computing through MPS.
  std::array<decltype(&::nvmlDeviceGetComputeRunningProcesses_v2), 3> processes_v2{};
  std::array<decltype(&::nvmlDeviceGetComputeRunningProcesses), 3> processes_v1{};
};

/// What a call of NVML that failed comes to here.
ErrorKind error_kind(nvmlReturn_t code);

class Nvml {
 public:
  /// `library` is a name for the loader, or a path. Fails with kNotFound when there is no such library, and
  /// with kUnsupported or kUnavailable when it cannot be used: a symbol is missing, it does not initialise,
  /// or the driver is older than kOldestDriver.
  static Result<Nvml> load(const std::string& library = kNvmlLibrary);

  Nvml(Nvml&& other) noexcept;
  Nvml& operator=(Nvml&& other) noexcept;
  ~Nvml();

  const NvmlFunctions& functions() const { return functions_; }
  const std::string& driver_version() const { return driver_version_; }
  /// NVML's own words for a return code: "GPU is lost".
  std::string error_text(nvmlReturn_t code) const;

 private:
  explicit Nvml(void* library) : library_(library) {}
  Status initialise(const std::string& name);

  void* library_ = nullptr;
  bool initialised_ = false;
  NvmlFunctions functions_;
  std::string driver_version_;
};

/// A library, or why there is none; shared by those that use it, and unloaded with the last of them.
using SharedNvml = std::shared_ptr<const Result<Nvml>>;

/// Of whatever unsigned kind a field's value is.
std::uint64_t unsigned_value(const nvmlFieldValue_t& field);

/// Whether driver version `a` ("390.30") is older than `b`; parts are compared as numbers.
bool older_driver(std::string_view a, std::string_view b);

}  // namespace drover::gpu

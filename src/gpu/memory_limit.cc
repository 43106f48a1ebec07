#include "gpu/memory_limit.h"

#include <fmt/format.h>

namespace drover::gpu {
namespace {

Status check_limit(const Nvml& nvml, const std::string& what, nvmlReturn_t code) {
  if (code == NVML_SUCCESS) return {};
  return fail(error_kind(code), fmt::format("The driver does not {}: {}", what, nvml.error_text(code)));
}

Result<nvmlDevice_t> limited_device(const Nvml& nvml, const std::string& gpu) {
  DROVER_CHECK_OK(knows_memory_limits(nvml));
  nvmlDevice_t device = nullptr;
  DROVER_CHECK_OK(check_limit(nvml, fmt::format("find GPU {}", gpu),
                              nvml.functions().device_by_uuid(gpu.c_str(), &device)));
  return device;
}

}  // namespace

Status knows_memory_limits(const Nvml& nvml) {
  const auto& f = nvml.functions();
  if (f.device_by_uuid != nullptr && f.set_memory_limits != nullptr && f.memory_limits != nullptr) return {};
  return fail(
      ErrorKind::kUnsupported,
      fmt::format("NVIDIA driver {} does not limit the memory of control groups", nvml.driver_version()),
      "615 does");
}

Result<MemoryLimit> memory_limit(const Nvml& nvml, const std::string& gpu, const std::string& group) {
  DROVER_TRY(auto* const device, limited_device(nvml, gpu));
  nvmlGetMemoryLimits_v1_t limits{group.c_str(), 0, 0, 0};
  DROVER_CHECK_OK(check_limit(nvml, fmt::format("tell the memory limit of '{}' on GPU {}", group, gpu),
                              nvml.functions().memory_limits(device, &limits)));
  return MemoryLimit{limits.softLimit, limits.hardLimit, limits.currentUsed};
}

Status set_memory_limit(const Nvml& nvml, const std::string& gpu, const std::string& group,
                        std::uint64_t soft, std::uint64_t hard) {
  DROVER_TRY(auto* const device, limited_device(nvml, gpu));
  nvmlSetMemoryLimits_v1_t limits{group.c_str(), soft, hard};
  return check_limit(nvml, fmt::format("limit the memory of '{}' on GPU {}", group, gpu),
                     nvml.functions().set_memory_limits(device, &limits));
}

}  // namespace drover::gpu

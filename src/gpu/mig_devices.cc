#include "gpu/mig_devices.h"

namespace drover::gpu {

std::vector<MigDevice> list_mig_devices(const Nvml& nvml, nvmlDevice_t gpu) {
  constexpr unsigned kMostDevices = 64;  // more than any card has
  const auto& f = nvml.functions();
  std::vector<MigDevice> devices;
  if (f.mig_device_by_index == nullptr || f.gpu_instance_id == nullptr || f.compute_instance_id == nullptr)
    return devices;
  for (unsigned index = 0; index < kMostDevices; ++index) {
    MigDevice device;
    const auto code = f.mig_device_by_index(gpu, index, &device.handle);
    if (code == NVML_ERROR_INVALID_ARGUMENT || code == NVML_ERROR_NOT_SUPPORTED) break;
    if (code == NVML_SUCCESS && f.gpu_instance_id(device.handle, &device.gpu_instance) == NVML_SUCCESS &&
        f.compute_instance_id(device.handle, &device.compute_instance) == NVML_SUCCESS)
      devices.push_back(device);
  }
  return devices;
}

}  // namespace drover::gpu

#include "gpu/device_handle.h"

#include <array>

namespace drover::gpu {

bool DeviceHandle::is_ours(const Nvml& nvml, nvmlDevice_t handle, nvmlReturn_t& code) const {
  std::array<char, NVML_DEVICE_UUID_BUFFER_SIZE> uuid{};
  const auto ask = nvml.functions().uuid;
  code = ask == nullptr ? NVML_ERROR_FUNCTION_NOT_FOUND : ask(handle, uuid.data(), uuid.size());
  uuid.back() = '\0';
  return code == NVML_SUCCESS && uuid_ == uuid.data();
}

/// By its place where that is known: asking by UUID fails when any GPU of the machine is lost, and going
/// through all of them waits for those that are stuck.
nvmlReturn_t DeviceHandle::find(const Nvml& nvml) {
  const auto& f = nvml.functions();
  nvmlDevice_t found = nullptr;
  nvmlReturn_t code = NVML_SUCCESS;
  if (pci_ && f.device_by_pci != nullptr) {
    code = f.device_by_pci(to_string(*pci_).c_str(), &found);
    if (code == NVML_ERROR_INVALID_ARGUMENT) code = NVML_ERROR_NOT_FOUND;
    if (code == NVML_SUCCESS && !is_ours(nvml, found, code) && code == NVML_SUCCESS)
      code = NVML_ERROR_NOT_FOUND;
    if (code == NVML_SUCCESS) handle_ = found;
    return code;
  }
  unsigned int count = 0;
  if (code = f.device_count(&count); code != NVML_SUCCESS) return code;
  for (unsigned int index = 0; index < count; ++index)
    if (f.device_by_index(index, &found) == NVML_SUCCESS && is_ours(nvml, found, code)) {
      handle_ = found;
      return NVML_SUCCESS;
    }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t DeviceHandle::renew(const Nvml& nvml) {
  nvmlReturn_t code = NVML_SUCCESS;
  if (handle_ != nullptr && !is_ours(nvml, handle_, code)) handle_ = nullptr;
  if (handle_ == nullptr) code = find(nvml);
  return code;
}

}  // namespace drover::gpu

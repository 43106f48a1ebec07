// Multi-Instance GPU: the cards that can do it say how they could be cut. The mode is off, so no instance
// exists.

#include <array>

#include "sim/entry/call.h"

using namespace drover::sim;

namespace {

/// Runs `body(const Call&)` on a card that can be cut.
template <typename Body>
nvmlReturn_t on_mig_card(const char* function, nvmlDevice_t device, Body body) noexcept {
  return with_device(function, device, [&](const Call& call) {
    return call.model.mig.empty() ? NVML_ERROR_NOT_SUPPORTED : body(call);
  });
}

/// NVML numbers its profiles by slices; 1, 2, 3, 4 and 7 come first.
int slices_of(unsigned int profile) {
  static constexpr std::array kSlices{1, 2, 3, 4, 7};
  return profile < kSlices.size() ? kSlices[profile] : 0;
}

template <typename Info>
void fill(const MigProfile& mig, Info& info) {
  info.id = static_cast<unsigned int>(mig.id);
  info.isP2pSupported = 0;
  info.sliceCount = static_cast<unsigned int>(mig.slices);
  info.instanceCount = static_cast<unsigned int>(mig.instances);
  info.multiprocessorCount = static_cast<unsigned int>(mig.multiprocessors);
  info.copyEngineCount = static_cast<unsigned int>(mig.copy_engines);
  info.decoderCount = static_cast<unsigned int>(mig.decoders);
  info.encoderCount = 0;
  info.jpegCount = mig.slices == 7 ? 1 : 0;
  info.ofaCount = mig.slices == 7 ? 1 : 0;
  info.memorySizeMB = mig.memory_mib;
}

template <typename Fill>
nvmlReturn_t profile_info(const char* function, nvmlDevice_t device, unsigned int profile,
                          Fill fill_out) noexcept {
  return on_mig_card(function, device, [&](const Call& call) {
    if (profile >= NVML_GPU_INSTANCE_PROFILE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
    for (const auto& mig : call.model.mig)
      if (mig.slices == slices_of(profile)) return fill_out(mig);
    return NVML_ERROR_NOT_SUPPORTED;
  });
}

nvmlDeviceAttributes_t attributes_of(const Call& call) {
  nvmlDeviceAttributes_t attributes{};
  attributes.multiprocessorCount = static_cast<unsigned int>(call.model.multiprocessors);
  attributes.memorySizeMB = call.model.memory_mib;
  return attributes;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* current, unsigned int* pending) {
  return on_mig_card(__func__, device, [&](const Call&) {
    if (pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *pending = NVML_DEVICE_MIG_DISABLE;
    return answer(current, NVML_DEVICE_MIG_DISABLE);
  });
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int* count) {
  return get(__func__, device, count, [](const Call& call) { return call.model.mig.empty() ? 0 : 7; });
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t* mig) {
  return on_mig_card(__func__, device, [&](const Call&) {
    return mig == nullptr || index >= 7 ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_FOUND;
  });
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int* is_mig) {
  return get(__func__, device, is_mig, [](const Call&) { return 0; });
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t*) {
  return with_device(__func__, mig, [](const Call&) { return NVML_ERROR_INVALID_ARGUMENT; });
}
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig, unsigned int*) {
  return with_device(__func__, mig, [](const Call&) { return NVML_ERROR_NOT_SUPPORTED; });
}
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig, unsigned int*) {
  return with_device(__func__, mig, [](const Call&) { return NVML_ERROR_NOT_SUPPORTED; });
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t* attributes) {
  return get(__func__, device, attributes, attributes_of);
}
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t* attributes) {
  return get(__func__, device, attributes, attributes_of);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int profile,
                                                 nvmlGpuInstanceProfileInfo_t* info) {
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return profile_info(__func__, device, profile, [&](const MigProfile& mig) {
    fill(mig, *info);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int profile,
                                                  nvmlGpuInstanceProfileInfo_v2_t* info) {
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return profile_info(__func__, device, profile, [&](const MigProfile& mig) {
    if (info->version != NVML_STRUCT_VERSION(GpuInstanceProfileInfo, 2))
      return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    fill(mig, *info);
    copy_text(info->name, "MIG " + mig.name);
    return NVML_SUCCESS;
  });
}

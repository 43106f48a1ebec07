// Multi-Instance GPU: the mode, how a card could be cut, and the MIG devices that there are.

#include <algorithm>
#include <array>
#include <utility>

#include "sim/entry/mig_call.h"

using namespace drover::sim;

namespace {

/// By which the interface asks for a profile; the other number, its id, is on every card the same too.
unsigned int number_of(const MigProfile& profile) {
  static constexpr std::array<std::pair<int, unsigned int>, 7> kNumbers{
      {{19, NVML_GPU_INSTANCE_PROFILE_1_SLICE},
       {14, NVML_GPU_INSTANCE_PROFILE_2_SLICE},
       {9, NVML_GPU_INSTANCE_PROFILE_3_SLICE},
       {5, NVML_GPU_INSTANCE_PROFILE_4_SLICE},
       {0, NVML_GPU_INSTANCE_PROFILE_7_SLICE},
       {20, NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1},
       {15, NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2}}};
  for (const auto& [id, number] : kNumbers)
    if (id == profile.id) return number;
  return NVML_GPU_INSTANCE_PROFILE_COUNT;
}

template <typename Info>
void fill(const MigProfile& mig, Info& info) {
  const auto engines = engines_of(mig);
  info.id = static_cast<unsigned int>(mig.id);
  info.isP2pSupported = 0;
  info.sliceCount = static_cast<unsigned int>(mig.slices);
  info.instanceCount = static_cast<unsigned int>(mig.instances);
  info.multiprocessorCount = static_cast<unsigned int>(mig.multiprocessors);
  info.copyEngineCount = static_cast<unsigned int>(mig.copy_engines);
  info.decoderCount = static_cast<unsigned int>(mig.decoders);
  info.encoderCount = 0;
  info.jpegCount = engines.jpeg;
  info.ofaCount = engines.ofa;
  info.memorySizeMB = mig.memory_mib;
}

template <typename Fill>
nvmlReturn_t profile_info(const char* function, nvmlDevice_t device, unsigned int profile,
                          Fill fill_out) noexcept {
  return on_mig_card(function, device, [&](const Call& call) {
    if (profile >= NVML_GPU_INSTANCE_PROFILE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
    for (const auto& mig : call.model.mig)
      if (number_of(mig) == profile) return fill_out(mig);
    return NVML_ERROR_NOT_SUPPORTED;
  });
}

nvmlDeviceAttributes_t attributes_of(const Call& call) {
  nvmlDeviceAttributes_t attributes{};
  attributes.multiprocessorCount = static_cast<unsigned int>(call.model.multiprocessors);
  attributes.memorySizeMB = call.model.memory_mib;
  return attributes;
}

nvmlDeviceAttributes_t attributes_of(const MigPart& part) {
  const auto& mig = part.instance.profile;
  const auto engines = engines_of(mig);
  const auto slices = static_cast<unsigned int>(mig.slices);
  return {
      .multiprocessorCount = static_cast<unsigned int>(mig.multiprocessors) * part.compute.slices / slices,
      .sharedCopyEngineCount = static_cast<unsigned int>(mig.copy_engines),
      .sharedDecoderCount = static_cast<unsigned int>(mig.decoders),
      .sharedEncoderCount = 0,
      .sharedJpegCount = engines.jpeg,
      .sharedOfaCount = engines.ofa,
      .gpuInstanceSliceCount = slices,
      .computeInstanceSliceCount = part.compute.slices,
      .memorySizeMB = mig.memory_mib};
}

nvmlReturn_t attributes(const char* function, nvmlDevice_t device, nvmlDeviceAttributes_t* out) noexcept {
  return with_device_or_part(
      function, device, [&](const Call& call) { return answer(out, attributes_of(call)); },
      [&](const Call&, const MigPart& part) { return answer(out, attributes_of(part)); });
}

nvmlReturn_t placements(const char* function, nvmlDevice_t device, unsigned int profile_id,
                        nvmlGpuInstancePlacement_t* out, unsigned int* count, bool has_room) noexcept {
  return on_mig_card(function, device, [&](const Call& call) {
    const auto* profile = profile_with(call.model, profile_id);
    if (profile == nullptr || count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    std::vector<nvmlGpuInstancePlacement_t> possible;
    for (const auto start : possible_starts(call.model, *profile))
      possible.push_back({start, memory_slices(call.model, *profile)});
    if (out != nullptr && has_room) return answer_list(count, out, possible);
    *count = static_cast<unsigned int>(possible.size());
    if (out != nullptr) std::copy(possible.begin(), possible.end(), out);
    return NVML_SUCCESS;
  });
}

/// Of MIG devices only.
template <typename Value>
nvmlReturn_t of_part(const char* function, nvmlDevice_t device, unsigned int* out, Value value) noexcept {
  return with_device_or_part(
      function, device, [](const Call&) { return NVML_ERROR_NOT_SUPPORTED; },
      [&](const Call&, const MigPart& part) { return answer(out, value(part)); });
}

}  // namespace

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* current, unsigned int* pending) {
  return on_mig_card(__func__, device, [&](const Call& call) {
    if (pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *pending = mig_of(call).enabled ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
    return answer(current, *pending);
  });
}

// It takes effect at once, as where nothing uses the GPU.
nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t* activation) {
  return on_mig_card(__func__, device, [&](const Call& call) {
    if (activation == nullptr || mode > NVML_DEVICE_MIG_ENABLE) return NVML_ERROR_INVALID_ARGUMENT;
    *activation = NVML_SUCCESS;
    return call.machine.mig().change([&](MigState& state) {
      auto& gpu = state[call.device.position];
      if (mode == NVML_DEVICE_MIG_DISABLE && !gpu.instances.empty()) return NVML_ERROR_IN_USE;
      gpu.enabled = mode == NVML_DEVICE_MIG_ENABLE;
      return NVML_SUCCESS;
    });
  });
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int* count) {
  return get(__func__, device, count,
             [](const Call& call) { return call.model.mig.empty() ? 0 : kComputeSlices; });
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t* mig) {
  return on_mig_card(__func__, device, [&](const Call& call) {
    if (mig == nullptr || index >= kComputeSlices) return NVML_ERROR_INVALID_ARGUMENT;
    for (const auto& instance : mig_of(call).instances)
      for (const auto& compute : instance.compute)
        if (index-- == 0)
          return answer(
              mig, call.machine.mig_handles().devices.of({call.device.position, instance.id, compute.id}));
    return NVML_ERROR_NOT_FOUND;
  });
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int* is_mig) {
  return with_device_or_part(
      __func__, device, [&](const Call&) { return answer(is_mig, 0); },
      [&](const Call&, const MigPart&) { return answer(is_mig, 1); });
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t* device) {
  return with_device_or_part(
      __func__, mig, [](const Call&) { return NVML_ERROR_INVALID_ARGUMENT; },
      [&](const Call& call, const MigPart&) {
        return answer(device, call.machine.at(call.device.position));
      });
}
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig, unsigned int* id) {
  return of_part(__func__, mig, id, [](const MigPart& part) { return part.instance.id; });
}
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig, unsigned int* id) {
  return of_part(__func__, mig, id, [](const MigPart& part) { return part.compute.id; });
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t* out) {
  return attributes(__func__, device, out);
}
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t* out) {
  return attributes(__func__, device, out);
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

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device, unsigned int profile_id,
                                                        nvmlGpuInstancePlacement_t* out,
                                                        unsigned int* count) {
  return placements(__func__, device, profile_id, out, count, false);
}
nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int profile_id,
                                                           nvmlGpuInstancePlacement_t* out,
                                                           unsigned int* count) {
  return placements(__func__, device, profile_id, out, count, true);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int profile_id,
                                                       unsigned int* count) {
  return on_mig_card(__func__, device, [&](const Call& call) {
    const auto* profile = profile_with(call.model, profile_id);
    if (profile == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    const auto gpu = mig_of(call);
    if (!gpu.enabled) return NVML_ERROR_NOT_SUPPORTED;
    const auto there = static_cast<std::size_t>(std::ranges::count_if(
        gpu.instances, [&](const GpuInstance& instance) { return instance.profile.id == profile->id; }));
    const auto most = static_cast<std::size_t>(profile->instances);
    return answer(count,
                  std::min(free_starts(call.model, gpu, *profile).size(), most - std::min(most, there)));
  });
}

// Multi-Instance GPU: GPU instances and their compute instances, made and destroyed.

#include <array>
#include <optional>
#include <string>

#include "sim/entry/mig_call.h"

using namespace drover::sim;

namespace {

/// The profiles of compute instances are numbered as their slices are; the number is the id too.
constexpr std::array<unsigned int, 7> kComputeProfiles{1, 2, 3, 4, 7, 8, 6};

std::optional<unsigned int> slices_of(unsigned int compute_profile) {
  if (compute_profile >= kComputeProfiles.size()) return std::nullopt;
  return kComputeProfiles.at(compute_profile);
}

unsigned int compute_profile_of(unsigned int slices) {
  const auto* const found = std::ranges::find(kComputeProfiles, slices);
  return found == kComputeProfiles.end() ? NVML_COMPUTE_INSTANCE_PROFILE_COUNT
                                         : static_cast<unsigned int>(found - kComputeProfiles.begin());
}

unsigned int slices_of(const GpuInstance& instance) {
  return static_cast<unsigned int>(instance.profile.slices);
}

/// Runs `body(const Call&, const InstancePlace&)` for a place that one of the tables knows the handle of.
template <typename Table, typename Handle, typename Body>
nvmlReturn_t at_place(const char* function, Table table, Handle handle, Body body) noexcept {
  return with_session([&](const Session& session) {
    const auto place = (session.machine->mig_handles().*table).find(handle);
    const auto* device = place ? session.machine->at(place->position) : nullptr;
    if (device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    return on_device(function, session, *device, [&](const Call& call) { return body(call, *place); });
  });
}

/// Runs `body(const Call&, const GpuInstance&)`.
template <typename Body>
nvmlReturn_t on_instance(const char* function, nvmlGpuInstance_t handle, Body body) noexcept {
  return at_place(function, &MigHandles::gpu_instances, handle,
                  [&](const Call& call, const InstancePlace& place) {
                    const auto gpu = mig_of(call);
                    const auto* instance = gpu.find(place.gpu_instance);
                    return instance == nullptr ? NVML_ERROR_NOT_FOUND : body(call, *instance);
                  });
}

/// Runs `edit(MigGpu&, GpuInstance&)` on the state of the simulation, and writes it.
template <typename Edit>
nvmlReturn_t change_instance(const Call& call, unsigned int id, Edit edit) {
  return call.machine.mig().change([&](MigState& state) {
    auto& gpu = state[call.device.position];
    for (auto& instance : gpu.instances)
      if (instance.id == id) return edit(gpu, instance);
    return NVML_ERROR_NOT_FOUND;
  });
}

nvmlGpuInstance_t handle_of(const Call& call, unsigned int id) {
  return call.machine.mig_handles().gpu_instances.of({call.device.position, id, 0});
}

nvmlComputeInstance_t handle_of(const Call& call, const GpuInstance& instance, unsigned int id) {
  return call.machine.mig_handles().compute_instances.of({call.device.position, instance.id, id});
}

nvmlDevice_t handle_of(const Call& call) {
  return call.machine.at(call.device.position);
}

nvmlReturn_t create(const char* function, nvmlDevice_t device, unsigned int profile_id,
                    std::optional<nvmlGpuInstancePlacement_t> placement, nvmlGpuInstance_t* out) noexcept {
  return on_mig_card(function, device, [&](const Call& call) {
    const auto* profile = profile_with(call.model, profile_id);
    if (profile == nullptr || out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    if (placement && placement->size != memory_slices(call.model, *profile))
      return NVML_ERROR_INVALID_ARGUMENT;
    unsigned int id = 0;
    const auto made = call.machine.mig().change([&](MigState& state) {
      const auto start = placement ? std::optional(placement->start) : std::nullopt;
      return add_instance(call.model, state[call.device.position], *profile, start, id);
    });
    return made == NVML_SUCCESS ? answer(out, handle_of(call, id)) : made;
  });
}

nvmlReturn_t compute_info(const char* function, nvmlComputeInstance_t handle,
                          nvmlComputeInstanceInfo_t* info) noexcept {
  return at_place(function, &MigHandles::compute_instances, handle,
                  [&](const Call& call, const InstancePlace& place) {
                    const auto gpu = mig_of(call);
                    const auto* instance = gpu.find(place.gpu_instance);
                    if (instance == nullptr) return NVML_ERROR_NOT_FOUND;
                    for (const auto& part : instance->compute)
                      if (part.id == place.compute_instance)
                        return answer(info, nvmlComputeInstanceInfo_t{handle_of(call),
                                                                      handle_of(call, instance->id),
                                                                      part.id,
                                                                      compute_profile_of(part.slices),
                                                                      {part.start, part.slices}});
                    return NVML_ERROR_NOT_FOUND;
                  });
}

}  // namespace

nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int profile_id,
                                         nvmlGpuInstance_t* instance) {
  return create(__func__, device, profile_id, std::nullopt, instance);
}
nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int profile_id,
                                                      const nvmlGpuInstancePlacement_t* placement,
                                                      nvmlGpuInstance_t* instance) {
  if (placement == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return create(__func__, device, profile_id, *placement, instance);
}

nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t handle) {
  return on_instance(__func__, handle, [&](const Call& call, const GpuInstance& found) {
    return change_instance(call, found.id, [](MigGpu& gpu, const GpuInstance& instance) {
      if (!instance.compute.empty()) return NVML_ERROR_IN_USE;
      std::erase_if(gpu.instances, [id = instance.id](const GpuInstance& other) { return other.id == id; });
      return NVML_SUCCESS;
    });
  });
}

nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int profile_id,
                                       nvmlGpuInstance_t* instances, unsigned int* count) {
  return on_mig_card(__func__, device, [&](const Call& call) {
    if (instances == nullptr || count == nullptr || profile_with(call.model, profile_id) == nullptr)
      return NVML_ERROR_INVALID_ARGUMENT;
    const auto gpu = mig_of(call);
    if (!gpu.enabled) return NVML_ERROR_NOT_SUPPORTED;
    *count = 0;
    for (const auto& instance : gpu.instances)
      if (static_cast<unsigned int>(instance.profile.id) == profile_id)
        instances[(*count)++] = handle_of(call, instance.id);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t* instance) {
  return on_mig_card(__func__, device, [&](const Call& call) {
    return mig_of(call).find(id) == nullptr ? NVML_ERROR_NOT_FOUND : answer(instance, handle_of(call, id));
  });
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t* info) {
  return on_instance(__func__, handle, [&](const Call& call, const GpuInstance& instance) {
    return answer(info, nvmlGpuInstanceInfo_t{handle_of(call),
                                              instance.id,
                                              static_cast<unsigned int>(instance.profile.id),
                                              {instance.start, memory_slices(call.model, instance.profile)}});
  });
}

namespace {

/// Fills what all versions of the structure have.
template <typename Info>
nvmlReturn_t compute_profile(const GpuInstance& instance, unsigned int profile, unsigned int engine_profile,
                             Info& info) {
  if (engine_profile != NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED ||
      profile >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT)
    return NVML_ERROR_INVALID_ARGUMENT;
  const auto slices = slices_of(profile);
  const auto all = slices_of(instance);
  if (!slices || *slices > all) return NVML_ERROR_NOT_SUPPORTED;
  const auto& mig = instance.profile;
  const auto engines = engines_of(mig);
  info.id = profile;
  info.sliceCount = *slices;
  info.instanceCount = all / *slices;
  info.multiprocessorCount = static_cast<unsigned int>(mig.multiprocessors) * *slices / all;
  info.sharedCopyEngineCount = static_cast<unsigned int>(mig.copy_engines);
  info.sharedDecoderCount = static_cast<unsigned int>(mig.decoders);
  info.sharedEncoderCount = 0;
  info.sharedJpegCount = engines.jpeg;
  info.sharedOfaCount = engines.ofa;
  return NVML_SUCCESS;
}

/// "MIG 1c.3g.20gb", and "MIG 3g.20gb" of what takes all of its GPU instance.
template <typename Info>
nvmlReturn_t named_compute_profile(const GpuInstance& instance, unsigned int profile,
                                   unsigned int engine_profile, Info& info) {
  const auto found = compute_profile(instance, profile, engine_profile, info);
  if (found != NVML_SUCCESS) return found;
  const auto part =
      info.sliceCount == slices_of(instance) ? std::string() : std::to_string(info.sliceCount) + "c.";
  copy_text(info.name, "MIG " + part + instance.profile.name);
  return NVML_SUCCESS;
}

}  // namespace

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t handle, unsigned int profile,
                                                          unsigned int engine_profile,
                                                          nvmlComputeInstanceProfileInfo_t* info) {
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return on_instance(__func__, handle, [&](const Call&, const GpuInstance& instance) {
    return compute_profile(instance, profile, engine_profile, *info);
  });
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t handle, unsigned int profile,
                                                           unsigned int engine_profile,
                                                           nvmlComputeInstanceProfileInfo_v2_t* info) {
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return on_instance(__func__, handle, [&](const Call&, const GpuInstance& instance) {
    if (info->version == NVML_STRUCT_VERSION(ComputeInstanceProfileInfo, 2))
      return named_compute_profile(instance, profile, engine_profile, *info);
    if (info->version != NVML_STRUCT_VERSION(ComputeInstanceProfileInfo, 3))
      return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    auto& newer = *reinterpret_cast<nvmlComputeInstanceProfileInfo_v3_t*>(info);
    newer.capabilities = 0;
    return named_compute_profile(instance, profile, engine_profile, newer);
  });
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t handle,
                                                                unsigned int profile_id,
                                                                unsigned int* count) {
  return on_instance(__func__, handle, [&](const Call&, GpuInstance instance) {
    const auto slices = slices_of(profile_id);
    if (!slices) return NVML_ERROR_INVALID_ARGUMENT;
    unsigned int room = 0;
    for (unsigned int id = 0; add_compute(instance, *slices, id) == NVML_SUCCESS;) ++room;
    return answer(count, room);
  });
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t handle, unsigned int profile_id,
                                                  nvmlComputeInstance_t* compute) {
  return on_instance(__func__, handle, [&](const Call& call, const GpuInstance& found) {
    const auto slices = slices_of(profile_id);
    if (!slices || compute == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    unsigned int id = 0;
    const auto made = change_instance(
        call, found.id, [&](MigGpu&, GpuInstance& instance) { return add_compute(instance, *slices, id); });
    return made == NVML_SUCCESS ? answer(compute, handle_of(call, found, id)) : made;
  });
}

nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t handle) {
  return at_place(__func__, &MigHandles::compute_instances, handle,
                  [](const Call& call, const InstancePlace& place) {
                    return change_instance(call, place.gpu_instance, [&](MigGpu&, GpuInstance& instance) {
                      const auto gone = std::erase_if(instance.compute, [&](const ComputeInstance& part) {
                        return part.id == place.compute_instance;
                      });
                      return gone == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
                    });
                  });
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t handle, unsigned int profile_id,
                                                nvmlComputeInstance_t* instances, unsigned int* count) {
  return on_instance(__func__, handle, [&](const Call& call, const GpuInstance& instance) {
    const auto slices = slices_of(profile_id);
    if (!slices || instances == nullptr || count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (const auto& part : instance.compute)
      if (part.slices == *slices) instances[(*count)++] = handle_of(call, instance, part.id);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t handle, unsigned int id,
                                                   nvmlComputeInstance_t* compute) {
  return on_instance(__func__, handle, [&](const Call& call, const GpuInstance& instance) {
    const bool there =
        std::ranges::find(instance.compute, id, &ComputeInstance::id) != instance.compute.end();
    return there ? answer(compute, handle_of(call, instance, id)) : NVML_ERROR_NOT_FOUND;
  });
}

nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t compute, nvmlComputeInstanceInfo_t* info) {
  return compute_info(__func__, compute, info);
}
nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t compute, nvmlComputeInstanceInfo_t* info) {
  return compute_info(__func__, compute, info);
}

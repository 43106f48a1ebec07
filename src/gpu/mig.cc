#include "gpu/mig.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "gpu/mig_devices.h"

namespace drover::gpu {
namespace {

/// No profile has more instances on any card.
constexpr std::size_t kMostInstances = 64;
constexpr std::uint64_t kMib = 1ULL << 20;
constexpr std::string_view kNamePrefix = "MIG ";

std::string mig_name_of(const MigProfile& profile, std::uint64_t memory_of_gpu, bool media) {
  // Old libraries do not tell names. The memory in them is eighths of the card's, in whole GB of those.
  const auto whole = std::ceil(static_cast<double>(memory_of_gpu) / static_cast<double>(1024 * kMib));
  const auto eighths = std::round(8.0 * static_cast<double>(profile.attributes.memory_bytes) /
                                  static_cast<double>(memory_of_gpu));
  return fmt::format("{}g.{:.0f}gb{}", profile.slices, std::max(1.0, eighths * whole / 8),
                     media ? ".me" : "");
}

/// NVML's calls for one GPU, with their errors as results.
class MigCalls {
 public:
  static Result<MigCalls> on(const Nvml& nvml, const std::string& gpu) {
    const auto& f = nvml.functions();
    MigCalls calls(nvml, gpu);
    if (f.device_by_uuid == nullptr || f.gpu_instances == nullptr || f.mig_possible_placements == nullptr ||
        f.compute_instance_info == nullptr || f.mig_device_by_index == nullptr)
      return fail(ErrorKind::kUnsupported, "NVIDIA's driver is too old for MIG", "450.80 has it");
    DROVER_CHECK_OK(calls.check("nvmlDeviceGetHandleByUUID", f.device_by_uuid(gpu.c_str(), &calls.device_)));
    return calls;
  }

  Status check(const char* name, nvmlReturn_t code) const {
    if (code == NVML_SUCCESS) return {};
    return fail(error_kind(code), fmt::format("{} of GPU {}: {}", name, gpu_, nvml_.error_text(code)));
  }
  const NvmlFunctions& f() const { return nvml_.functions(); }
  nvmlDevice_t device() const { return device_; }

  /// nullopt for a number that the card has no profile of.
  Result<std::optional<MigProfile>> profile(unsigned number) const {
    nvmlGpuInstanceProfileInfo_t info{};
    if (f().gpu_instance_profile(device_, number, &info) != NVML_SUCCESS) return std::nullopt;
    MigProfile made;
    made.id = info.id;
    made.slices = info.sliceCount;
    made.instances = info.instanceCount;
    made.attributes = {info.multiprocessorCount, info.copyEngineCount, info.decoderCount,
                       info.encoderCount,        info.jpegCount,       info.ofaCount,
                       info.memorySizeMB * kMib};
    made.name = name(number, made);
    std::array<nvmlGpuInstancePlacement_t, kMostInstances> placements{};
    auto count = static_cast<unsigned>(placements.size());
    DROVER_CHECK_OK(check("nvmlDeviceGetGpuInstancePossiblePlacements",
                          f().mig_possible_placements(device_, info.id, placements.data(), &count)));
    for (unsigned i = 0; i < std::min<std::size_t>(count, placements.size()); ++i)
      made.placements.push_back({placements.at(i).start, placements.at(i).size});
    return made;
  }

  Result<std::vector<nvmlGpuInstance_t>> instances(unsigned profile_id) const {
    std::array<nvmlGpuInstance_t, kMostInstances> handles{};
    unsigned count = 0;
    DROVER_CHECK_OK(
        check("nvmlDeviceGetGpuInstances", f().gpu_instances(device_, profile_id, handles.data(), &count)));
    return std::vector<nvmlGpuInstance_t>(handles.begin(),
                                          handles.begin() + std::min<std::size_t>(count, handles.size()));
  }

  Result<std::vector<nvmlComputeInstanceInfo_t>> parts(nvmlGpuInstance_t instance,
                                                       std::vector<nvmlComputeInstance_t>& handles) const {
    std::vector<nvmlComputeInstanceInfo_t> parts;
    for (unsigned number = 0; number < NVML_COMPUTE_INSTANCE_PROFILE_COUNT; ++number) {
      const auto profile = compute_profile(instance, number);
      if (!profile) continue;
      std::array<nvmlComputeInstance_t, kMostInstances> found{};
      unsigned count = 0;
      DROVER_CHECK_OK(check("nvmlGpuInstanceGetComputeInstances",
                            f().compute_instances(instance, profile->id, found.data(), &count)));
      for (unsigned i = 0; i < std::min<std::size_t>(count, found.size()); ++i) {
        nvmlComputeInstanceInfo_t info{};
        DROVER_CHECK_OK(check("nvmlComputeInstanceGetInfo", f().compute_instance_info(found.at(i), &info)));
        parts.push_back(info);
        handles.push_back(found.at(i));
      }
    }
    return parts;
  }

  std::optional<nvmlComputeInstanceProfileInfo_t> compute_profile(nvmlGpuInstance_t instance,
                                                                  unsigned number) const {
    nvmlComputeInstanceProfileInfo_t info{};
    const auto code =
        f().compute_instance_profile(instance, number, NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, &info);
    return code == NVML_SUCCESS ? std::optional(info) : std::nullopt;
  }

  /// The profile of compute instances that take all of a GPU instance.
  Result<unsigned> whole_compute_profile(nvmlGpuInstance_t instance, unsigned slices) const {
    for (unsigned number = 0; number < NVML_COMPUTE_INSTANCE_PROFILE_COUNT; ++number)
      if (const auto profile = compute_profile(instance, number); profile && profile->sliceCount == slices)
        return profile->id;
    return fail(ErrorKind::kUnsupported,
                fmt::format("GPU {} has no compute instance of {} slices", gpu_, slices));
  }

  /// "" when there is no such device.
  std::string uuid(unsigned gpu_instance, unsigned compute_instance) const {
    for (const auto& device : list_mig_devices(nvml_, device_)) {
      if (device.gpu_instance != gpu_instance || device.compute_instance != compute_instance) continue;
      std::array<char, NVML_DEVICE_UUID_BUFFER_SIZE> text{};
      if (f().uuid(device.handle, text.data(), text.size()) != NVML_SUCCESS) break;
      text.back() = '\0';
      return text.data();
    }
    return "";
  }

  Result<MigInstanceFacts> facts(nvmlGpuInstance_t instance, unsigned slices) const {
    nvmlGpuInstanceInfo_t info{};
    DROVER_CHECK_OK(check("nvmlGpuInstanceGetInfo", f().gpu_instance_info(instance, &info)));
    MigInstanceFacts facts{info.id, info.profileId, {info.placement.start, info.placement.size}, "", 0};
    std::vector<nvmlComputeInstance_t> handles;
    DROVER_TRY(const auto compute, parts(instance, handles));
    const auto profile = whole_compute_profile(instance, slices);
    if (profile && compute.size() == 1 && compute.front().profileId == *profile) {
      facts.compute_instance = compute.front().id;
      facts.uuid = uuid(facts.gpu_instance, facts.compute_instance);
    }
    return facts;
  }

  /// The GPU instance at a place; null when there is none.
  Result<nvmlGpuInstance_t> find(const MigPart& part) const {
    DROVER_TRY(const auto handles, instances(part.profile_id));
    for (auto* handle : handles) {
      nvmlGpuInstanceInfo_t info{};
      DROVER_CHECK_OK(check("nvmlGpuInstanceGetInfo", f().gpu_instance_info(handle, &info)));
      if (info.placement.start == part.placement.start) return handle;
    }
    return nullptr;
  }

 private:
  MigCalls(const Nvml& nvml, const std::string& gpu) : nvml_(nvml), gpu_(gpu) {}

  std::string name(unsigned number, const MigProfile& profile) const {
    nvmlGpuInstanceProfileInfo_v2_t info{};
    info.version = NVML_STRUCT_VERSION(GpuInstanceProfileInfo, 2);
    if (f().gpu_instance_profile_v != nullptr &&
        f().gpu_instance_profile_v(device_, number, &info) == NVML_SUCCESS) {
      info.name[std::size(info.name) - 1] = '\0';
      std::string text = info.name;
      if (text.starts_with(kNamePrefix)) text.erase(0, kNamePrefix.size());
      std::ranges::replace(text, '+', '.');
      if (!text.empty()) return text;
    }
    nvmlMemory_t memory{};
    if (f().memory_info == nullptr || f().memory_info(device_, &memory) != NVML_SUCCESS || memory.total == 0)
      memory.total = std::max<unsigned long long>(1, profile.attributes.memory_bytes);
    return mig_name_of(profile, memory.total, number == NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1);
  }

  const Nvml& nvml_;
  const std::string& gpu_;
  nvmlDevice_t device_ = nullptr;
};

Result<std::vector<MigProfile>> profiles_of(const MigCalls& calls) {
  std::vector<MigProfile> profiles;
  for (unsigned number = 0; number < NVML_GPU_INSTANCE_PROFILE_COUNT_NEWEST; ++number) {
    DROVER_TRY(auto profile, calls.profile(number));
    const bool known = profile && std::ranges::find(profiles, profile->id, &MigProfile::id) != profiles.end();
    if (profile && !known) profiles.push_back(std::move(*profile));
  }
  std::ranges::sort(profiles, {}, &MigProfile::id);
  return profiles;
}

Status destroy_compute(const MigCalls& calls, nvmlGpuInstance_t instance) {
  std::vector<nvmlComputeInstance_t> handles;
  DROVER_CHECK_OK(calls.parts(instance, handles));
  for (auto* handle : handles)
    DROVER_CHECK_OK(calls.check("nvmlComputeInstanceDestroy", calls.f().compute_instance_destroy(handle)));
  return {};
}

}  // namespace

Result<MigGpu> discover_mig(const Nvml& nvml, const std::string& gpu) {
  DROVER_TRY(const auto calls, MigCalls::on(nvml, gpu));
  MigGpu found;
  DROVER_TRY(found.profiles, profiles_of(calls));
  for (const auto& profile : found.profiles) {
    DROVER_TRY(const auto handles, calls.instances(profile.id));
    for (auto* handle : handles) {
      DROVER_TRY(auto facts, calls.facts(handle, profile.slices));
      found.instances.push_back(std::move(facts));
    }
  }
  std::ranges::sort(found.instances, {}, &MigInstanceFacts::placement);
  return found;
}

Result<MigInstanceFacts> make_mig_instance(const Nvml& nvml, const MigPart& part) {
  DROVER_TRY(const auto calls, MigCalls::on(nvml, part.gpu));
  DROVER_TRY(const auto profiles, profiles_of(calls));
  const auto profile = std::ranges::find(profiles, part.profile_id, &MigProfile::id);
  if (profile == profiles.end())
    return fail(ErrorKind::kInvalid,
                fmt::format("GPU {} has no MIG profile with the id {}", part.gpu, part.profile_id));
  DROVER_TRY(auto* instance, calls.find(part));
  if (instance == nullptr) {
    const nvmlGpuInstancePlacement_t placement{part.placement.start, part.placement.size};
    DROVER_CHECK_OK(
        calls.check("nvmlDeviceCreateGpuInstanceWithPlacement",
                    calls.f().create_gpu_instance(calls.device(), part.profile_id, &placement, &instance)));
  }
  DROVER_TRY(auto facts, calls.facts(instance, profile->slices));
  if (!facts.uuid.empty()) return facts;
  DROVER_CHECK_OK(destroy_compute(calls, instance));
  DROVER_TRY(const auto whole, calls.whole_compute_profile(instance, profile->slices));
  nvmlComputeInstance_t compute = nullptr;
  DROVER_CHECK_OK(calls.check("nvmlGpuInstanceCreateComputeInstance",
                              calls.f().create_compute_instance(instance, whole, &compute)));
  DROVER_TRY(facts, calls.facts(instance, profile->slices));
  if (facts.uuid.empty())
    return fail(ErrorKind::kUnavailable,
                fmt::format("GPU {} does not tell the UUID of the instance that was made", part.gpu));
  return facts;
}

Status destroy_mig_instance(const Nvml& nvml, const MigPart& part) {
  DROVER_TRY(const auto calls, MigCalls::on(nvml, part.gpu));
  DROVER_TRY(auto* instance, calls.find(part));
  if (instance == nullptr) return {};
  DROVER_CHECK_OK(destroy_compute(calls, instance));
  return calls.check("nvmlGpuInstanceDestroy", calls.f().gpu_instance_destroy(instance));
}

}  // namespace drover::gpu

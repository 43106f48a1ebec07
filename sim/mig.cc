#include "sim/mig.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/yaml.h"
#include "sim/required.h"

namespace drover::sim {
namespace {

using nlohmann::json;

constexpr unsigned int kMostIds = 15;

/// The lowest number from `first` on that no element has; kMostIds when all are taken.
template <typename Instances>
unsigned int free_id(const Instances& instances, unsigned int first) {
  auto id = first;
  while (id < kMostIds && std::ranges::find(instances, id, &Instances::value_type::id) != instances.end())
    ++id;
  return id;
}

bool has_room(const GpuInstance& instance, const ComputeInstance& wanted) {
  if (wanted.start + wanted.slices > static_cast<unsigned int>(instance.profile.slices)) return false;
  return std::ranges::none_of(instance.compute, [&](const ComputeInstance& part) {
    return part.id == wanted.id ||
           (wanted.start < part.start + part.slices && part.start < wanted.start + wanted.slices);
  });
}

template <typename Instances, typename Instance>
void insert_by_id(Instances& instances, Instance instance) {
  const auto place = std::ranges::upper_bound(instances, instance.id, {}, &Instance::id);
  instances.insert(place, std::move(instance));
}

void decode_compute(Decoder& decoder, std::vector<Error>& errors, GpuInstance& instance) {
  const Required required(decoder, errors);
  const auto start = required.integer<unsigned int>("start", 0, kComputeSlices - 1);
  const auto slices = required.integer<unsigned int>("slices", 1, kComputeSlices);
  const auto id = required.integer<unsigned int>("id", 0, kComputeSlices - 1);
  const ComputeInstance made{id, start, slices};
  if (!has_room(instance, made)) decoder.mistake("slices", "the GPU instance has no room for them");
  insert_by_id(instance.compute, made);
  decoder.finish();
}

void decode_instance(Decoder& decoder, std::vector<Error>& errors, const Model& model, MigGpu& gpu) {
  const Required required(decoder, errors);
  const auto name = required.string("profile");
  const auto id = required.integer<unsigned int>("id", 0, kMostIds - 1);
  const auto start = required.integer<unsigned int>("start", 0, kMemorySlices - 1);
  const auto profile = std::ranges::find(model.mig, name, &MigProfile::name);
  if (profile == model.mig.end()) {
    decoder.mistake("profile", "this GPU has no such MIG profile");
  } else if (gpu.find(id) != nullptr) {
    decoder.mistake("id", "another GPU instance has it");
  } else if (unsigned int given = 0; add_instance(model, gpu, *profile, start, given) != NVML_SUCCESS) {
    decoder.mistake("start", "there is no room for it");
  } else {
    auto made = *gpu.find(given);
    std::erase_if(gpu.instances, [&](const GpuInstance& instance) { return instance.id == given; });
    made.id = id;
    for (auto& part : decoder.objects("compute")) decode_compute(part, errors, made);
    insert_by_id(gpu.instances, std::move(made));
  }
  decoder.finish();
}

MigGpu decode_gpu_state(const json& value, const std::string& path, std::vector<Error>& errors,
                        const Model& model) {
  Decoder decoder(value, errors, path);
  MigGpu gpu{decoder.boolean("enabled").value_or(false), {}};
  if (gpu.enabled && model.mig.empty()) decoder.mistake("enabled", "this GPU cannot be cut up");
  for (auto& instance : decoder.objects("instances")) {
    if (!gpu.enabled) decoder.mistake("instances", "there are none unless MIG mode is enabled");
    decode_instance(instance, errors, model, gpu);
  }
  decoder.finish();
  return gpu;
}

MigState initial_state(const Profile& profile) {
  MigState state;
  for (const auto& gpu : profile.gpus) state.push_back({gpu.mig, {}});
  return state;
}

json encode_instance(const GpuInstance& instance) {
  auto compute = json::array();
  for (const auto& part : instance.compute)
    compute.push_back({{"id", part.id}, {"start", part.start}, {"slices", part.slices}});
  return {{"id", instance.id},
          {"profile", instance.profile.name},
          {"start", instance.start},
          {"compute", std::move(compute)}};
}

/// Held while a change is made, over all processes.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& file)
      : fd_(::open((file.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0 && errno == EINTR) continue;
  }
  ~FileLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const { return fd_ >= 0; }

 private:
  int fd_;
};

}  // namespace

const GpuInstance* MigGpu::find(unsigned int id) const {
  const auto found = std::ranges::find(instances, id, &GpuInstance::id);
  return found == instances.end() ? nullptr : &*found;
}

unsigned int memory_slices(const Model& model, const MigProfile& profile) {
  const auto slices = (profile.memory_mib * kMemorySlices + model.memory_mib / 2) / model.memory_mib;
  return std::clamp<unsigned int>(static_cast<unsigned int>(slices), 1, kMemorySlices);
}

/// NVIDIA's MIG user guide draws the places: multiples of an instance's size, and its compute slices, of
/// which there is one less than of memory's, begin where its memory does.
std::vector<unsigned int> possible_starts(const Model& model, const MigProfile& profile) {
  const auto size = memory_slices(model, profile);
  std::vector<unsigned int> starts;
  for (unsigned int start = 0; start + static_cast<unsigned int>(profile.slices) <= kComputeSlices;
       start += size)
    starts.push_back(start);
  return starts;
}

std::vector<unsigned int> free_starts(const Model& model, const MigGpu& gpu, const MigProfile& profile) {
  const auto alike = std::ranges::count_if(
      gpu.instances, [&](const GpuInstance& instance) { return instance.profile.id == profile.id; });
  if (alike >= profile.instances) return {};
  const auto size = memory_slices(model, profile);
  auto starts = possible_starts(model, profile);
  std::erase_if(starts, [&](unsigned int start) {
    return std::ranges::any_of(gpu.instances, [&](const GpuInstance& instance) {
      return start < instance.start + memory_slices(model, instance.profile) && instance.start < start + size;
    });
  });
  return starts;
}

nvmlReturn_t add_instance(const Model& model, MigGpu& gpu, const MigProfile& profile,
                          std::optional<unsigned int> start, unsigned int& id) {
  if (!gpu.enabled) return NVML_ERROR_NOT_SUPPORTED;
  const auto starts = free_starts(model, gpu, profile);
  const auto place = start ? std::ranges::find(starts, *start) : starts.begin();
  id = free_id(gpu.instances, 1);
  if (place == starts.end() || id == kMostIds) return NVML_ERROR_INSUFFICIENT_RESOURCES;
  insert_by_id(gpu.instances, GpuInstance{id, profile, *place, {}});
  return NVML_SUCCESS;
}

nvmlReturn_t add_compute(GpuInstance& instance, unsigned int slices, unsigned int& id) {
  id = free_id(instance.compute, 0);
  for (unsigned int start = 0; start < kComputeSlices; ++start) {
    const ComputeInstance made{id, start, slices};
    if (!has_room(instance, made)) continue;
    insert_by_id(instance.compute, made);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_INSUFFICIENT_RESOURCES;
}

std::string mig_uuid(const Gpu& gpu, const GpuInstance& instance, const ComputeInstance& compute) {
  return "MIG-" + made_up_uuid(gpu.uuid + "/" + instance.profile.name + "/" + std::to_string(instance.start) +
                               "/" + std::to_string(compute.id));
}

std::string mig_name(const GpuInstance& instance, const ComputeInstance& compute) {
  const bool whole = compute.slices == static_cast<unsigned int>(instance.profile.slices);
  return "MIG " + (whole ? "" : std::to_string(compute.slices) + "c.") + instance.profile.name;
}

Result<MigState> decode_mig_state(const json& document, const Profile& profile, std::string_view what) {
  auto state = initial_state(profile);
  if (document.is_null()) return state;
  if (!document.is_object())
    return fail(ErrorKind::kInvalid, std::string(what) + ": expected an object with a key per GPU");
  std::vector<Error> errors;
  for (const auto& [key, value] : document.items()) {
    if (const auto position = gpu_named(profile, key))
      state[*position] = decode_gpu_state(value, "/" + key, errors, profile.gpus[*position].model);
    else
      errors.push_back(
          {ErrorKind::kInvalid, "no such GPU", "name it by position, UUID or PCI address", "/" + key});
  }
  if (!errors.empty()) return Failure(join_mistakes(errors, what));
  return state;
}

json encode_mig_state(const MigState& state) {
  auto document = json::object();
  for (std::size_t i = 0; i < state.size(); ++i) {
    auto instances = json::array();
    for (const auto& instance : state[i].instances) instances.push_back(encode_instance(instance));
    document[std::to_string(i)] = {{"enabled", state[i].enabled}, {"instances", std::move(instances)}};
  }
  return document;
}

MigFile::MigFile(std::filesystem::path file, const Profile& profile, bool verbose)
    : file_(std::move(file)),
      profile_(&profile),
      verbose_(verbose),
      state_(std::make_shared<const MigState>(initial_state(profile))) {}

std::shared_ptr<const MigState> MigFile::current() {
  const std::scoped_lock lock(mutex_);
  reload();
  return state_;
}

void MigFile::reload() {
  const auto stamp = FileStamp::of(file_);
  if (stamp == stamp_) return;
  stamp_ = stamp;
  const auto loaded = stamp == FileStamp()
                          ? Result<MigState>(initial_state(*profile_))
                          : read_yaml(file_).and_then([&](const json& document) {
                              return decode_mig_state(document, *profile_, "'" + file_.string() + "'");
                            });
  good_ = loaded.has_value();
  if (loaded)
    state_ = std::make_shared<const MigState>(*loaded);
  else if (verbose_)
    std::fprintf(stderr, "drover-sim: MIG instances stay as they were: %s\n",
                 to_string(loaded.error()).c_str());
}

nvmlReturn_t MigFile::change(const std::function<nvmlReturn_t(MigState&)>& edit) {
  const std::scoped_lock lock(mutex_);
  const FileLock file_lock(file_);
  if (!file_lock.held()) return NVML_ERROR_NO_PERMISSION;
  reload();
  if (!good_) return NVML_ERROR_UNKNOWN;
  auto state = *state_;
  if (const auto refused = edit(state); refused != NVML_SUCCESS) return refused;
  const auto written = write(state);
  reload();
  return written;
}

nvmlReturn_t MigFile::write(const MigState& state) const {
  const auto temporary = file_.string() + ".new";
  std::ofstream out(temporary, std::ios::trunc);
  out << encode_mig_state(state).dump(1) << "\n";
  out.close();
  if (!out || std::rename(temporary.c_str(), file_.c_str()) != 0) return NVML_ERROR_NO_PERMISSION;
  return NVML_SUCCESS;
}

}  // namespace drover::sim

#include "hardware.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/files.h"
#include "base/process.h"
#include "driver/cdi.h"
#include "driver/files.h"
#include "driver/volume.h"
#include "gpu/device_files.h"

namespace drover {

namespace {

/// A driver that wakes up its cards takes some seconds.
constexpr std::chrono::seconds kLoadPatience{20};
constexpr const char* kVolumes = "driver";

/// What a file of one line below /sys says; "" when it is not there.
std::string kernel_says(const std::string& path) {
  auto text = read_file(path).value_or("");
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

Result<Hardware> Hardware::open(const HardwareOptions& options) {
  Hardware hardware;
  hardware.options_ = options;
  hardware.registry_ = std::make_shared<cdi::KeptRegistry>(options.cdi_folders);
  DROVER_TRY(hardware.allowed_, cdi::Allowed::parse(options.allowed_devices));
  hardware.program_ = options.hook_program;
  if (hardware.program_.empty()) {
    DROVER_TRY(hardware.program_, executable_path());
  }
  hardware.guard_ = options.guard.empty() ? driver::find_guard().value_or(driver::Guard{}) : options.guard;
  if (options.simulate.empty()) {
    DROVER_TRY(hardware.host_, gpu::host_facts(options.state));
  } else {
    DROVER_TRY(const auto places, gpu::simulator_places());
    DROVER_TRY(hardware.simulation_, gpu::prepare_simulation(options.simulate, options.state, places));
    DROVER_TRY(hardware.host_, gpu::simulated_host_facts(hardware.simulation_->profile_file));
  }
  if (!options.driver_root.empty() && options.volume) {
    DROVER_TRY(const auto files, hardware.files_of_volume());
    DROVER_CHECK_OK(hardware.volume(files).map([](auto&&) {}));
  }
  return hardware;
}

std::function<Result<gpu::Nvml>()> Hardware::loader() const {
  if (simulation_) return [library = simulation_->nvml_library] { return gpu::Nvml::load(library); };
  return [root = options_.driver_root]() -> Result<gpu::Nvml> {
    auto nvml = gpu::Nvml::load();
    if (nvml || nvml.error().kind != ErrorKind::kNotFound || root.empty()) return nvml;
    // The driver may be only below its root, as when a driver container brings it.
    DROVER_TRY(const auto files, driver::find({.root = root}));
    for (const auto& file : files.files)
      if (file.source.find("/libnvidia-ml.so") != std::string::npos)
        return gpu::Nvml::load(root + file.source);
    return nvml;
  };
}

/// After an upgrade the old library is still in memory, and knows nothing of the new kernel driver.
bool Hardware::is_out_of_date(const gpu::Nvml& nvml) const {
  if (simulation_) return false;
  const auto running = kernel_says("/sys/module/nvidia/version");
  return !running.empty() && running != nvml.driver_version();
}

gpu::SharedNvml Hardware::shared_nvml() const {
  std::unique_lock lock(loaded_->mutex);
  // It is unloaded with its last user; until then loading again gives the same one, and the next look tries
  // again.
  if (loaded_->nvml && *loaded_->nvml && is_out_of_date(**loaded_->nvml)) loaded_->nvml.reset();
  if (loaded_->nvml && *loaded_->nvml) return loaded_->nvml;
  if (!std::exchange(loaded_->loading, true))
    std::thread([loaded = loaded_, load = loader()] {
      auto fresh = std::make_shared<const Result<gpu::Nvml>>(load());
      const std::lock_guard again(loaded->mutex);
      loaded->nvml = std::move(fresh);
      loaded->loading = false;
      loaded->changed.notify_all();
    }).detach();
  if (loaded_->changed.wait_for(lock, kLoadPatience, [this] { return !loaded_->loading; }))
    return loaded_->nvml;
  return std::make_shared<const Result<gpu::Nvml>>(fail(
      ErrorKind::kUnavailable, "The NVIDIA driver does not answer: NVML is being loaded and does not return",
      "look at what the kernel says of it (dmesg), and whether 'nvidia-smi' returns"));
}

gpu::Inventory Hardware::discover() const {
  gpu::DiscoveryOptions discovery;
  discovery.numa = host_.numa;
  if (!simulation_) return gpu::discover(*shared_nvml(), discovery);
  discovery.kernel = std::nullopt;
  discovery.simulation = simulation_->profile;
  const auto kept = gpu::keep_live_file(*simulation_);
  auto inventory = gpu::discover(*shared_nvml(), discovery);
  if (!kept) inventory.problems.push_back(kept.error());
  return inventory;
}

Hardware::DevicePlaces Hardware::places_below_driver_root() const {
  const auto below = [](const std::string& root) {
    return (std::filesystem::path(root) / "dev").lexically_normal().string();
  };
  const auto& on_host = options_.host_driver_root;
  return {below(driver_root()), below(on_host.empty() ? driver_root() : on_host)};
}

Hardware::DevicePlaces Hardware::device_places() const {
  if (simulation_) return {simulation_->device_folder, simulation_->device_folder};
  const DevicePlaces machine{"/dev", "/dev"};
  if (options_.driver_root.empty()) return machine;
  auto driver = places_below_driver_root();
  return gpu::device_folder_of({machine.here, driver.here}) == machine.here ? machine : driver;
}

Error Hardware::with_places_hint(Error error) const {
  if (error.kind == ErrorKind::kNotFound && !simulation_ && !options_.driver_root.empty())
    error.hint = fmt::format(
        "they were looked for in '/dev' and '{}', where a driver container makes them; without one, {}",
        places_below_driver_root().on_host, error.hint);
  return error;
}

Result<std::vector<gpu::DeviceNode>> Hardware::nodes_of(const std::vector<gpu::Device>& devices) const {
  std::vector<gpu::DeviceNode> nodes;
  const auto folder = device_places().here;
  for (const auto& device : devices) {
    if (!device.minor)
      return fail(ErrorKind::kUnavailable,
                  fmt::format("GPU {} ({}) does not tell its device node", device.index, device.uuid));
    auto node = gpu::gpu_device_node(folder, *device.minor);
    if (!node) return Failure(with_places_hint(std::move(node).error()));
    nodes.push_back(*std::move(node));
  }
  return nodes;
}

Result<std::vector<gpu::DeviceNode>> Hardware::control_nodes() const {
  auto nodes = gpu::control_device_nodes(device_places().here);
  if (!nodes) return Failure(with_places_hint(std::move(nodes).error()));
  return nodes;
}

gpu::MigNodePlaces Hardware::mig_node_places() const {
  gpu::MigNodePlaces places;
  places.devices = device_places().here;
  if (simulation_) places.minors = simulation_->mig_minors;
  return places;
}

template <typename FindOptions>
FindOptions Hardware::find_options() const {
  FindOptions find;
  find.root = driver_root();
  find.version = driver_version();
  if (simulation_ && options_.driver_root.empty()) {
    find.data_files = simulation_->data_files;
    find.shared_files = {{simulation_->live_file, gpu::kLiveFileInside}};
  }
  return find;
}

Result<driver::DriverFiles> Hardware::files_of_volume() const {
  return driver::find(find_options<driver::FindOptions>());
}

Result<driver::Volume> Hardware::volume(const driver::DriverFiles& files) const {
  return driver::build_volume(files, options_.state + "/" + kVolumes, guard_);
}

/// Where it cannot be told which driver the machine has, all of them stay.
Result<driver::RemovedVolumes> Hardware::remove_old_volumes(
    std::uint64_t bytes, const std::function<bool(const std::string& name)>& is_used) const {
  const auto files = files_of_volume();
  if (!files) return driver::RemovedVolumes();
  return driver::remove_old_volumes(options_.state + "/" + kVolumes, files->version, bytes, is_used);
}

std::string Hardware::driver_root() const {
  if (!options_.driver_root.empty())
    return std::filesystem::absolute(options_.driver_root).lexically_normal();
  return simulation_ ? simulation_->driver_root : "/";
}

std::string Hardware::driver_version() const {
  const auto loaded = shared_nvml();
  return *loaded ? (*loaded)->driver_version() : "";
}

Result<driver::HostFiles> Hardware::driver_files(bool to_be_guarded) const {
  auto find = find_options<driver::HostFilesOptions>();
  find.host_root = options_.host_driver_root;
  utsname system{};
  ::uname(&system);
  find.kernel_release = static_cast<const char*>(system.release);
  find.firmware_folder = kernel_says("/sys/module/firmware_class/parameters/path");
  find.guarded = to_be_guarded;
  return driver::find_host_files(find);
}

/// With the guard before them; the supply gets what lies over them where they are.
Result<driver::HostFiles> Hardware::guard_files(container::DriverSupply& supply) const {
  DROVER_TRY(auto files, driver_files(true));
  if (guard_.empty()) return Failure(driver::find_guard().error());
  // What is simulated without a root of its own is in the state folder, which tasks do not see.
  if (!simulation_ || !options_.driver_root.empty()) {
    DROVER_TRY(const auto covers, driver::guard_on_host(files, guard_));
    for (const auto& cover : covers) supply.on_host.push_back({cover.source, cover.destination});
  }
  return driver::guarded(std::move(files), guard_);
}

Result<share::Programs> Hardware::sharing_programs() const {
  namespace fs = std::filesystem;
  constexpr const char* kSmi = "nvidia-smi";
  constexpr const char* kMpsControl = "nvidia-cuda-mps-control";
  share::Programs programs{.smi = "", .mps_control = "", .environment = minimal_environment()};
  if (simulation_) {
    programs.smi = simulation_->program_folder + "/" + kSmi;
    programs.mps_control = simulation_->program_folder + "/" + kMpsControl;
    programs.environment["DROVER_SIM_SETTINGS"] = simulation_->settings;
    return programs;
  }
  DROVER_TRY(const auto driver, driver_files());
  const auto root = driver_root();
  const auto here = [&](const std::string& path) { return root == "/" ? path : root + path; };
  for (const auto& file : driver.files) {
    const auto name = fs::path(file.destination).filename();
    if (name == kSmi) programs.smi = here(file.destination);
    if (name == kMpsControl) programs.mps_control = here(file.destination);
  }
  if (programs.smi.empty())
    return fail(ErrorKind::kNotFound, fmt::format("there is no '{}' below the driver root '{}'", kSmi, root),
                "NVIDIA's packages for computing have it");
  // The control daemon looks for the server's program there; below another root are the libraries too.
  if (!programs.mps_control.empty())
    programs.environment["PATH"] = fs::path(programs.mps_control).parent_path().string() + ":/usr/bin:/bin";
  if (root != "/")
    for (const auto& library : driver.libraries)
      if (fs::path(library).filename() == "libcuda.so.1")
        programs.environment["LD_LIBRARY_PATH"] = here(fs::path(library).parent_path());
  return programs;
}

Result<container::DriverSupply> Hardware::driver_supply(bool guarded) const {
  container::DriverSupply supply;
  // Of what is guarded it is known now whether it can be; the others find their files only if they want them.
  std::optional<driver::HostFiles> found;
  if (guarded) {
    DROVER_TRY(found, guard_files(supply));
  }
  DROVER_TRY(supply.control_devices, control_nodes());
  // Held until the launch is through: from then on the container is seen to have it.
  supply.volume = [this, guarded,
                   held = std::make_shared<driver::Volume>()]() -> Result<std::vector<container::HostMount>> {
    DROVER_TRY(const auto files, files_of_volume());
    DROVER_TRY(*held, volume(files));
    if (guarded && held->guarded.empty()) return Failure(driver::find_guard().error());
    std::vector<container::HostMount> mounts{
        {guarded ? held->guarded : held->path, driver::kContainerFolder}};
    for (const auto& file : files.shared)
      mounts.push_back({file.source, fmt::format("{}/{}", driver::kContainerFolder, file.name), true});
    return mounts;
  };
  supply.files = [this, found = std::move(found)]() -> Result<cdi::Edits> {
    if (found) return driver::edits_of_files(*found, program_);
    DROVER_TRY(const auto files, driver_files());
    return driver::edits_of_files(files, program_);
  };
  return supply;
}

Result<cdi::Edits> Hardware::devices_of(const workload::Task& task) const {
  constexpr const char* kWayOut = "ask for GPUs with --gpus, so that nobody else gets the same ones";
  std::vector<cdi::DeviceName> names;
  for (const auto& text : task.devices) {
    DROVER_TRY(auto name, cdi::parse_device_name(text));
    if (name.kind == driver::kCdiKind)
      return fail(ErrorKind::kPermissionDenied,
                  fmt::format("'{}' is a GPU, and is not given as a device", text), kWayOut);
    if (task.owner != 0) DROVER_CHECK_OK(allowed_.check(name, task.user));
    names.push_back(std::move(name));
  }
  DROVER_TRY(auto edits, registry_->edits_of(names));
  DROVER_CHECK_OK(cdi::complete_device_nodes(edits));
  const auto shown = fmt::format("{}", fmt::join(task.devices, "', '"));
  const auto nodes_of_gpus = [this] {
    auto nodes = gpu::nvidia_device_nodes(device_places().here);
    for (auto& node : gpu::nvidia_screen_nodes()) nodes.push_back(std::move(node));
    return nodes;
  };
  if (const auto node = driver::gpu_node_in(edits, nodes_of_gpus()); !node.empty())
    return fail(ErrorKind::kPermissionDenied, fmt::format("'{}' brings a GPU along: '{}'", shown, node),
                kWayOut);
  if (!task.image && (!edits.mounts.empty() || !edits.hooks.empty()))
    return fail(ErrorKind::kInvalid,
                fmt::format("'{}' brings files along, which a task without an image has no place for", shown),
                "give the task an image");
  return edits;
}

Result<cdi::Specification> Hardware::cdi_specification(gpu::Inventory inventory) const {
  driver::CdiInput input;
  input.inventory = std::move(inventory);
  // One GPU that is lost has no device node to tell, and must not hide the others.
  std::erase_if(input.inventory.devices, [](const gpu::Device& device) { return !device.unhealthy.empty(); });
  input.device_folder = device_folder();
  DROVER_TRY(input.gpu_nodes, nodes_of(input.inventory.devices));
  DROVER_TRY(input.control_nodes, control_nodes());
  DROVER_TRY(input.files, driver_files());
  input.program = program_;
  return driver::cdi_specification(input);
}

}  // namespace drover

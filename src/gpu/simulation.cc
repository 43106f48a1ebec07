#include "gpu/simulation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include "base/decode.h"
#include "base/files.h"
#include "gpu/host.h"
#include "gpu/mig_nodes.h"
#include "gpu/nvml.h"
#include "gpu/simulated_devices.h"
#include "sim/live.h"
#include "sim/profile.h"

namespace drover::gpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSuffix = ".yaml";
constexpr const char* kCudaLibrary = "libcuda.so.1";
constexpr const char* kDataFile = "share/drover-sim/profile.yaml";  // from the folder above the library's
constexpr std::uint64_t kLargestLibrary = 64ULL << 20;

Result<std::string> find_profile(const std::string& profile, const SimulatorPlaces& places) {
  std::error_code error;
  if (profile.find('/') != std::string::npos || profile.ends_with(kSuffix)) {
    if (fs::exists(profile, error)) return profile;
    return fail(ErrorKind::kNotFound, fmt::format("there is no simulator profile in '{}'", profile));
  }
  for (const auto& folder : places.profile_folders)
    if (auto file = fmt::format("{}/{}{}", folder, profile, kSuffix); fs::exists(file, error)) return file;
  const auto known = known_profiles(places);
  const auto meant = nearest(profile, known);
  const auto list = known.empty() ? "none is installed" : fmt::format("known are {}", fmt::join(known, ", "));
  return fail(ErrorKind::kNotFound, fmt::format("there is no simulator profile '{}'", profile),
              meant.empty() ? list : fmt::format("did you mean '{}'? {}", meant, list));
}

Result<std::string> find_library(const std::vector<std::string>& candidates) {
  for (const auto& candidate : candidates)
    if (::access(candidate.c_str(), R_OK) == 0) return candidate;
  return fail(ErrorKind::kNotFound, "the simulator library is not installed",
              fmt::format("it should be one of: {}", fmt::join(candidates, ", ")));
}

/// Leaves a file that is right as it is, so that a driver volume made from it stays valid, and a full disk is
/// no matter.
Status put_file(const Directory& folder, const std::string& name, const std::string& content) {
  if (folder.read(name, kLargestLibrary) == content) return {};
  return folder.write(name, content);
}

Status put_link(const Directory& folder, const std::string& name, const std::string& target) {
  std::error_code error;
  const auto link = fs::path(folder.path()) / name;
  if (fs::read_symlink(link, error) == target) return {};
  DROVER_CHECK_OK(folder.remove_tree(name));
  fs::create_symlink(target, link, error);
  if (error) return fail_errno(fmt::format("Failed to link '{}'", link.string()), error.value());
  return {};
}

/// A folder that looks as if a driver of the profile's version were installed there.
Status make_driver_root(const std::string& root, const fs::path& nvml, const std::string& profile_text,
                        const std::string& version) {
  std::map<std::string, std::string> libraries;  // the name that programs load, and the file's
  for (const std::string name : {kNvmlLibrary, kCudaLibrary})
    libraries[name] = name.substr(0, name.rfind('.') + 1) + version;
  DROVER_TRY(const auto folder, Directory::create(root + (sizeof(void*) == 8 ? "/lib64" : "/lib")));
  DROVER_TRY(const auto present, folder.list());
  for (const auto& found : present)
    if (std::ranges::none_of(libraries, [&](const auto& library) {
          return found == library.first || found == library.second;
        }))
      DROVER_CHECK_OK(folder.remove_tree(found));
  for (const auto& [name, real_name] : libraries) {
    DROVER_TRY(const auto content, read_file(nvml.parent_path() / name, kLargestLibrary));
    DROVER_CHECK_OK(put_file(folder, real_name, content));
    DROVER_CHECK_OK(put_link(folder, name, real_name));
  }
  const auto data = fs::path(root) / kDataFile;
  DROVER_TRY(const auto share, Directory::create(data.parent_path()));
  return put_file(share, data.filename(), profile_text);
}

Status make_device_files(const sim::Profile& machine, const Simulation& simulation,
                         const std::set<unsigned>& in_use) {
  std::vector<int> minors;
  std::vector<int> divisible;
  for (const auto& gpu : machine.gpus) {
    minors.push_back(gpu.minor);
    if (!gpu.model.mig.empty()) divisible.push_back(gpu.minor);
  }
  DROVER_CHECK_OK(make_simulated_devices(simulation.device_folder, minors, in_use));
  if (divisible.empty()) {
    DROVER_TRY(const auto devices, Directory::open(simulation.device_folder));
    return devices.remove_tree("nvidia-caps");
  }
  DROVER_CHECK_OK(make_simulated_capabilities(simulation.device_folder, in_use));
  const fs::path minors_file(simulation.mig_minors);
  DROVER_TRY(const auto folder, Directory::open(minors_file.parent_path()));
  return put_file(folder, minors_file.filename(), mig_minors_text(divisible));
}

}  // namespace

Result<SimulatorPlaces> simulator_places() {
  DROVER_TRY(const auto here, executable_directory());
  SimulatorPlaces places;
  for (const auto& prefix : {here, fs::path(here).parent_path().string()}) {
    places.profile_folders.push_back(prefix + "/share/drover/profiles");
    places.libraries.push_back(prefix + "/lib/drover/sim/" + kNvmlLibrary);
  }
  return places;
}

Result<MachineFacts> machine_of_profile(const std::string& name) {
  DROVER_TRY(const auto places, simulator_places());
  DROVER_TRY(const auto file, profile_file(name, places));
  return simulated_machine(file);
}

std::set<std::string> known_profiles(const SimulatorPlaces& places) {
  std::set<std::string> names;
  for (const auto& folder : places.profile_folders) {
    const auto directory = Directory::open(folder);
    if (!directory) continue;
    for (const auto& file : directory->list().value_or(std::vector<std::string>{}))
      if (file.ends_with(kSuffix)) names.insert(fs::path(file).stem());
  }
  return names;
}

Result<std::string> profile_file(const std::string& name, const SimulatorPlaces& places) {
  if (name.find('/') != std::string::npos || name.ends_with(kSuffix))
    return fail(ErrorKind::kInvalid, "A profile is asked for by its name, not by a path",
                "docs/simulator.md lists the names");
  return find_profile(name, places);
}

Result<Simulation> prepare_simulation(const std::string& profile, const std::string& state,
                                      const SimulatorPlaces& places) {
  DROVER_TRY(const auto file, find_profile(profile, places));
  DROVER_TRY(const auto library, find_library(places.libraries));
  DROVER_TRY(const auto machine, sim::load_profile(file));
  DROVER_TRY(const auto text, read_file(file));
  DROVER_TRY(const auto drivers, read_file("/proc/devices"));

  const auto folder = state + "/sim";
  DROVER_TRY(const auto directory, Directory::create(folder));
  Simulation simulation{machine.name,
                        folder + "/driver/" + kDataFile,
                        library,
                        folder + "/dev",
                        folder + "/driver",
                        folder + "/mig-minors",
                        {kDataFile},
                        folder + "/live",
                        fs::path(library).parent_path() / "programs",
                        folder + "/settings"};
  DROVER_CHECK_OK(make_device_files(machine, simulation, majors_in_use(drivers)));
  DROVER_CHECK_OK(make_driver_root(simulation.driver_root, library, text, machine.driver_version));
  if (!directory.exists("faults.yaml")) DROVER_CHECK_OK(directory.write("faults.yaml", ""));
  DROVER_CHECK_OK(keep_live_file(simulation));
  ::setenv("DROVER_SIM_PROFILE", simulation.profile_file.c_str(), 1);
  ::setenv("DROVER_SIM_FAULTS", (folder + "/faults.yaml").c_str(), 1);
  ::setenv("DROVER_SIM_LIVE", simulation.live_file.c_str(), 1);
  return simulation;
}

Status keep_live_file(const Simulation& simulation) {
  constexpr mode_t kEverybody = 0666;
  const sim::LiveHeader header{sim::kLiveMagic, sim::kLiveVersion, {}};
  const std::string_view head(reinterpret_cast<const char*>(&header), sizeof header);
  const fs::path path(simulation.live_file);
  const std::string name = path.filename();
  DROVER_TRY(const auto folder, Directory::open(path.parent_path()));
  struct stat info{};
  if (::fstatat(folder.fd(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) {
    DROVER_CHECK_OK(folder.remove_tree(name));
    DROVER_CHECK_OK(folder.write(name, head, kEverybody));
  }
  DROVER_TRY(const auto file, folder.open_file(name, O_RDWR | O_NONBLOCK));
  const auto is_right = [&] {
    std::array<char, sizeof header> found{};
    return ::pread(file.get(), found.data(), found.size(), 0) == ssize_t{sizeof header} &&
           std::string_view(found.data(), found.size()) == head;
  };
  if (::fchmod(file.get(), kEverybody) != 0 || ::fstat(file.get(), &info) != 0 ||
      (info.st_size != off_t{sizeof(sim::LiveState)} &&
       ::ftruncate(file.get(), sizeof(sim::LiveState)) != 0) ||
      (!is_right() && ::pwrite(file.get(), &header, sizeof header, 0) != ssize_t{sizeof header}))
    return fail_errno(fmt::format("Failed to make '{}' as it must be", path.string()), errno);
  return {};
}

}  // namespace drover::gpu

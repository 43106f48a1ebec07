#include "gpu/simulation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/decode.h"
#include "base/files.h"
#include "gpu/host.h"
#include "gpu/mig_nodes.h"
#include "gpu/nvml.h"
#include "gpu/simulated_devices.h"
#include "sim/profile.h"

namespace drover::gpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSuffix = ".yaml";
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

/// A folder that looks as if a driver of the profile's version were installed there.
Status make_driver_root(const std::string& root, const std::string& library, const std::string& profile_text,
                        const std::string& version) {
  DROVER_TRY(const auto content, read_file(library, kLargestLibrary));
  const auto real_name = fmt::format("libnvidia-ml.so.{}", version);
  DROVER_TRY(const auto folder, Directory::create(root + (sizeof(void*) == 8 ? "/lib64" : "/lib")));
  DROVER_TRY(const auto present, folder.list());
  for (const auto& name : present)
    if (name != real_name && name != kNvmlLibrary) DROVER_CHECK_OK(folder.remove_tree(name));
  DROVER_CHECK_OK(put_file(folder, real_name, content));
  std::error_code error;
  if (const auto link = fs::path(folder.path()) / kNvmlLibrary; fs::read_symlink(link, error) != real_name) {
    DROVER_CHECK_OK(folder.remove_tree(kNvmlLibrary));
    fs::create_symlink(real_name, link, error);
    if (error) return fail_errno(fmt::format("Failed to link '{}'", link.string()), error.value());
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
  Simulation simulation{machine.name,       folder + "/driver/" + kDataFile, library,    folder + "/dev",
                        folder + "/driver", folder + "/mig-minors",          {kDataFile}};
  DROVER_CHECK_OK(make_device_files(machine, simulation, majors_in_use(drivers)));
  DROVER_CHECK_OK(make_driver_root(simulation.driver_root, library, text, machine.driver_version));
  if (!directory.exists("faults.yaml")) DROVER_CHECK_OK(directory.write("faults.yaml", ""));
  ::setenv("DROVER_SIM_PROFILE", simulation.profile_file.c_str(), 1);
  ::setenv("DROVER_SIM_FAULTS", (folder + "/faults.yaml").c_str(), 1);
  return simulation;
}

}  // namespace drover::gpu

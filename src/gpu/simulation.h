#pragma once

// A machine that is only simulated: everything `drover serve --simulate PROFILE` needs of one, in a folder of
// its own. The GPUs have real character devices behind which there is no driver, so that isolation is real
// too. Not thread safe: it sets environment variables, so call it before threads start.
//
//   auto simulation = prepare_simulation("k40m", state, *simulator_places());
//   auto nvml = Nvml::load(simulation->nvml_library);

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/machine_facts.h"

namespace drover::gpu {

/// Where the live file is in containers, from the folder above the libraries'.
inline constexpr const char* kLiveFileInside = "share/drover-sim/live";

/// Where the simulator's parts lie. Earlier folders are preferred.
struct SimulatorPlaces {
  std::vector<std::string> profile_folders;
  std::vector<std::string> libraries;  ///< NVML; CUDA lies beside it
};
/// Beside the running program, as built or as installed.
Result<SimulatorPlaces> simulator_places();

struct Simulation {
  std::string profile;                  ///< name: "k40m"
  std::string profile_file;             ///< the copy in use
  std::string nvml_library;             ///< for Nvml::load
  std::string device_folder;            ///< for device_files.h: stands for /dev
  std::string driver_root;              ///< for driver::find
  std::string mig_minors;               ///< for mig_nodes.h: stands for the driver's file
  std::vector<std::string> data_files;  ///< for driver::find: what the library needs beside it in a container
  std::string live_file;                ///< sim/live.h; what containers have at kLiveFileInside, to write
  std::string program_folder;           ///< has a simulated nvidia-smi, and what MPS needs
  std::string settings;                 ///< folder: what these programs find in DROVER_SIM_SETTINGS
};

/// The names of those that are installed.
std::set<std::string> known_profiles(const SimulatorPlaces& places);
/// The file of a profile that is installed, by its name. kInvalid for a path.
Result<std::string> profile_file(const std::string& name, const SimulatorPlaces& places);
/// The machine of the profile of that name.
Result<MachineFacts> machine_of_profile(const std::string& name);

/// `profile` is a known name or the path of a file. Makes or completes <state>/sim: dev/ (195:N and so on),
/// driver/, faults.yaml, which is kept, and the live file, which containers that run may have. kNotFound for
/// an unknown profile or a simulator that is not installed, kPermissionDenied when device nodes may not be
/// made. Doing it again changes nothing.
Result<Simulation> prepare_simulation(const std::string& profile, const std::string& state,
                                      const SimulatorPlaces& places);

/// Makes the live file as it must be, if somebody has cut it, made it longer or spoilt its head: every
/// container with a simulated GPU may. What processes hold stays. Thread safe.
Status keep_live_file(const Simulation& simulation);

}  // namespace drover::gpu

#pragma once

// The guard's libraries (docs/shares.md) before those of the driver: in a container with a share of a GPU
// they have the names by which programs load CUDA and NVML, in the driver's own folder, and the driver's
// files keep only the names with its version. Programs that look for the driver in that folder find the
// guard, and so does an ldconfig that is run in the container. Pure, but for find_guard().

#include <array>
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/files.h"
#include "driver/host_files.h"

namespace drover::driver {

/// One library of the guard, and what it stands before.
struct GuardLibrary {
  std::string source;  ///< on the host, absolute
  std::string name;    ///< that programs load: "libcuda.so.1"
  std::string needed;  ///< by which the guard needs the driver's: "libdrover-driver-cuda.so.1"

  bool operator==(const GuardLibrary&) const = default;
};
using Guard = std::vector<GuardLibrary>;

/// Beside the running program, as built or as installed. kNotFound when a library is missing.
Result<Guard> find_guard();

/// The driver's files with the guard before them. kUnsupported for a driver whose libraries have no names
/// with a version, and without one of them.
Result<HostFiles> guarded(HostFiles files, const Guard& guard);

/// Of a driver volume: where the libraries are that there is a guard for.
inline const std::string kGuardedFolder = "lib64/";

/// Where the guard's pages are to be mounted, in a driver volume and so below kContainerFolder: the limits,
/// which the container reads, and its account, which it writes (guard/pages.h).
inline const std::array<std::string, 2> kGuardPages = {"share/limits", "share/account"};

/// The links of a driver volume in which the guard's libraries are at kGuardedFolder by their names, and all
/// else is where it was; but for libraries of 32 bits, which are left out.
Result<std::vector<DriverLink>> guarded_links(const DriverFiles& files, const Guard& guard);

}  // namespace drover::driver

#pragma once

// The guard's libraries (docs/shares.md) before those of the driver. In a container with a share of a GPU
// they lie where the driver's files of CUDA and NVML are otherwise, by their whole names with the driver's
// version, so all links to those, and whatever ldconfig makes of them in the container, lead to the guard.
// The driver's own files are in a folder that no loader searches, by the names that the guard needs them by.
// Pure, but for find_guard().

#include <array>
#include <map>
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

/// Below kContainerFolder: where the driver's own files are, by GuardLibrary::needed. The guard is built to
/// look there.
inline const std::string kBehindGuard = "guard/";
/// A page of the guard's (guard/pages.h).
struct GuardPage {
  std::string place;  ///< below kContainerFolder, and on the host below the folder of whoever has it
  bool writable = false;
};
/// The limits, which a container reads, and its account, which it writes.
inline const std::array<GuardPage, 2> kGuardPages = {{{"share/limits", false}, {"share/account", true}}};

/// Where a container with the machine's own files has both, since nothing can be made in those: a folder of
/// root's that is empty on the machine itself. The guard looks there too.
inline const std::string kGuardOnHost = "/run/drover-guard";

/// Beside the running program, as built or as installed. kNotFound when a library is missing.
Result<Guard> find_guard();

/// The driver's files with the guard before them. kUnsupported for a driver whose libraries have no names
/// with a version, and without one of them.
Result<HostFiles> guarded(HostFiles files, const Guard& guard);

/// The same for a container with the machine's own files: the guard over the driver's where they are, and
/// those again in kGuardOnHost. Errors as above.
Result<std::vector<HostFile>> guard_on_host(const HostFiles& files, const Guard& guard);

/// Which files of a driver volume the guard takes the place of: by their destinations. Errors as above.
Result<std::map<std::string, GuardLibrary>> guarded_places(const DriverFiles& files, const Guard& guard);

}  // namespace drover::driver

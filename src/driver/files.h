#pragma once

// Finds the user-land files of NVIDIA's driver below a root folder: the loader's cache first, else the
// standard library folders of every architecture. What goes where in a driver volume follows from the
// ELF class, as in Mesos (src/slave/containerizer/mesos/isolators/gpu/volume.cpp). Reads only; blocks; thread
// safe.
//
//   auto files = driver::find({.root = "/", .version = inventory.driver_version});
//   auto volume = driver::build_volume(*files, state + "/driver");

#include <string>
#include <vector>

#include "base/result.h"

namespace drover::driver {

/// Where a volume is mounted in a container.
inline constexpr const char* kContainerFolder = "/usr/local/nvidia";

struct DriverFile {
  std::string source;       ///< path inside the root, without symbolic links
  std::string destination;  ///< in the volume: "lib64/libcuda.so.535.216.03"
  bool executable = false;

  bool operator==(const DriverFile&) const = default;
};

/// A relative symbolic link in the volume.
struct DriverLink {
  std::string path;    ///< "lib64/libcuda.so.1"
  std::string target;  ///< "libcuda.so.535.216.03"

  bool operator==(const DriverLink&) const = default;
};

/// A file of the host that containers may write: no copy of it would do.
struct SharedFile {
  std::string source;  ///< on the host
  std::string name;    ///< in the volume: "share/drover-sim/live"

  bool operator==(const SharedFile&) const = default;
};

struct DriverFiles {
  std::string root;
  std::string version;
  std::vector<DriverFile> files;     ///< by destination, each once
  std::vector<DriverLink> links;     ///< by path
  std::vector<SharedFile> shared;    ///< in the volume are empty files, for them to be mounted at
  std::vector<std::string> skipped;  ///< what was found and left out, with the reason, for people; sorted
};

struct FindOptions {
  std::string root = "/";
  std::string version;  ///< of the kernel's driver: files of other versions are stale. "": the library tells
  std::vector<std::string>
      data_files;  ///< more files, relative to the root, for the same place in the volume
  std::vector<SharedFile> shared_files;
};

/// kNotFound when there is no driver below the root, or only one of another version.
Result<DriverFiles> find(const FindOptions& options);

}  // namespace drover::driver

#pragma once

// The driver volume: one folder nvidia_<version>/{bin,lib,lib64} with copies of the driver's files, mounted
// read-only into containers. Those with a share of a GPU get its folder guarded/ instead: the same files,
// with the guard before them (guard.h). It is whole or absent: built beside its place, made durable, then
// renamed. Running containers keep the folder that they hold: a rebuilt volume replaces the name, never the
// content. Several builders (threads or processes) may run at once: a lock file lets them wait for each
// other. Blocks.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "driver/files.h"
#include "driver/guard.h"

namespace drover::driver {

struct Volume {
  std::string path;  ///< of the folder on the host
  std::string version;
  std::string guarded;                        ///< of the one with the guard, inside; "": there is none
  bool reused = false;                        ///< it was there, and complete
  std::shared_ptr<const UniqueFd> held = {};  ///< while it lives, remove_old_volumes() leaves the folder
};

/// Makes sure that `folder` (created if need be) holds the volume of these files. Needs root: the volume
/// belongs to root. kUnsupported on a file system that forbids running programs (noexec). Without a guard,
/// or for a driver that it does not fit, nothing is guarded.
Result<Volume> build_volume(const DriverFiles& files, const std::string& folder, const Guard& guard = {});

struct RemovedVolumes {
  std::vector<std::string> names;
  std::uint64_t bytes = 0;  ///< that became free
};

/// Removes volumes of `folder` that are not the one of the driver `version`, the longest unused first, until
/// so many bytes are free. Those that somebody holds, or for whose name `is_used` holds, stay: containers
/// that run may see a volume that was renamed since. An absent folder has none.
Result<RemovedVolumes> remove_old_volumes(const std::string& folder, const std::string& version,
                                          std::uint64_t bytes,
                                          const std::function<bool(const std::string& name)>& is_used);

}  // namespace drover::driver

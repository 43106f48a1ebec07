#pragma once

// The driver volume: one folder nvidia_<version>/{bin,lib,lib64} with copies of the driver's files, mounted
// read-only into containers. It is whole or absent: built beside its place, made durable, then renamed.
// Running containers keep the folder that they hold: a rebuilt volume replaces the name, never the content.
// Several builders (threads or processes) may run at once: a lock file lets them wait for each other. Blocks.

#include <string>

#include "base/result.h"
#include "driver/files.h"

namespace drover::driver {

struct Volume {
  std::string path;  ///< of the folder on the host
  std::string version;
  bool reused = false;  ///< it was there, and complete
};

/// Makes sure that `folder` (created if need be) holds the volume of these files. Needs root: the volume
/// belongs to root. kUnsupported on a file system that forbids running programs (noexec).
Result<Volume> build_volume(const DriverFiles& files, const std::string& folder);

}  // namespace drover::driver

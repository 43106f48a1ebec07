#pragma once

// Where a machine has the driver's programs. Reads only; blocks; thread safe.

#include <optional>
#include <set>
#include <string>

#include "driver/root.h"

namespace drover::driver {

struct Program {
  RootFile file;
  std::string path;  ///< where programs look for it: "/usr/bin/nvidia-smi"
};

/// The first of that name that is a program itself. A script is taken where there is nothing else: many only
/// start the real one, which containers don't have. Searched where distributions keep programs, and then
/// beside the driver's own folders of libraries: "/usr/local/nvidia/bin" for "/usr/local/nvidia/lib64".
std::optional<Program> find_program(const Root& root, const std::string& name,
                                    const std::set<std::string>& library_folders);

}  // namespace drover::driver

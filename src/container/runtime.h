#pragma once

// Which OCI runtime works on this machine. It is found by trying: a runtime can be installed and yet refuse
// (crun on hybrid cgroups, an old one on a new kernel), and only a container that ran tells.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover::container {

struct RuntimeReport {
  std::string name;              ///< "runc", or the path that the user gave
  std::string path;              ///< "" when it was not found
  std::string version;           ///< "1.1.5"; "" when it does not say
  std::optional<Error> refused;  ///< why it cannot be used; none: it ran the trial container

  bool works() const { return !refused; }
};

/// Tries `wanted`, or when that is "" runc and crun in this order, up to the first that works, which is then
/// the last report. `trial` runs a container with the runtime at a path. Blocks.
std::vector<RuntimeReport> try_runtimes(const std::string& wanted,
                                        const std::function<Status(const std::string& path)>& trial);

/// Why none of them can be used, and what to do.
Error no_runtime(const std::vector<RuntimeReport>& reports);

/// "1.1.5" from the output of `runtime --version`; "" when there is none. Pure.
std::string parse_runtime_version(std::string_view output);

}  // namespace drover::container

#pragma once

// What versions of runtimes are publicly known for, and what of it concerns tasks of Drover. Only what lets a
// container out is listed. Pure; thread safe.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drover::container {

struct RuntimeFlaw {
  std::string id;         ///< "CVE-2024-21626"
  std::string what;       ///< what it allows, and what that means for tasks
  bool avoided = false;   ///< by the way Drover uses the runtime, whatever its version
  std::string mended_in;  ///< the oldest version after `version` without it

  bool operator==(const RuntimeFlaw&) const = default;
};

/// What `version` ("1.1.5", "1.2.0-rc.2+dev", "20.10.24+dfsg1") of "runc", "crun" or "docker" is known for,
/// in the order of the numbers; nothing for what is no version. What `changelog`, a distribution's own of its
/// package, names as mended is left out: it mends without changing the version.
std::vector<RuntimeFlaw> known_flaws(std::string_view program, std::string_view version,
                                     std::string_view changelog);

}  // namespace drover::container

#pragma once

// The list of system calls as a program for the kernel. It is compiled once, when the daemon starts, and
// drover-init gives it to itself: a runtime that is given the list compiles it anew for every container,
// which takes as long as all else that Drover adds to a start. Thread safe.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace drover::container {

/// A profile of seccomp_profile() as the bytes of an array of sock_filter (linux/filter.h), for a machine as
/// uname(2) names it. kUnsupported for a machine that libseccomp does not know. A call that it does not know
/// gets the default answer.
Result<std::string> compile_filter(const nlohmann::json& profile, std::string_view machine);

/// Files on the host, which anybody may read.
struct FilterFiles {
  std::string users;
  std::string roots;  ///< of those who are root in their container
};
/// Writes the filters of this machine below the state folder unless they are there.
Result<FilterFiles> place_filters(const std::string& state);

}  // namespace drover::container

#pragma once

// The system calls that a task may make, as a seccomp filter. What the list does not know is denied, with
// ENOSYS: a program of a newer libc than this list then takes the older call. What is known and not for
// containers is denied with EPERM. Only the machine's own 64-bit interface is open; a program that uses
// another (32-bit, x32) is ended. Pure; thread safe.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace drover::container {

/// The `linux.seccomp` part of the OCI runtime specification (1.0.2) for a machine as uname(2) names it
/// ("x86_64") and a process with these capabilities ("CAP_SYS_CHROOT").
nlohmann::json seccomp_profile(std::string_view machine, const std::vector<std::string>& capabilities);

}  // namespace drover::container

#pragma once

// The system calls that no task may make: those that reach around a container's borders or belong to the
// machine's administrator. A list of what is denied, not of what is allowed: capabilities and namespaces do
// the main work, and a new, harmless system call of a new libc must not break tasks. Pure; thread safe.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace drover::container {

/// The `linux.seccomp` part of the OCI runtime specification for a machine as uname(2) names it ("x86_64").
nlohmann::json seccomp_profile(std::string_view machine);

}  // namespace drover::container

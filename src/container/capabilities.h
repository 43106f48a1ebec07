#pragma once

// The capabilities of the first process of a container, and of what it starts. Pure; thread safe.

#include <string>
#include <vector>

#include "base/users.h"

namespace drover::container {

/// Root has those that Docker and Podman both give by default: no device nodes (CAP_MKNOD), no raw sockets
/// (CAP_NET_RAW), no words in the machine's audit log (CAP_AUDIT_WRITE). Everybody else has none. Sorted.
std::vector<std::string> capabilities_of(const User& user);

}  // namespace drover::container

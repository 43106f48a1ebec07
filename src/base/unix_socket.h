#pragma once

// Unix sockets in folders that are open: nobody is led elsewhere, however long the folder's path is.

#include <string>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"

namespace drover {

/// A path of this process' of a socket in the folder: short, as those of sockets must be.
std::string socket_path(const Directory& folder, const char* name);
/// A new socket there that listens and does not block, in the place of what was there.
Result<UniqueFd> listen_at(const Directory& folder, const char* name);

}  // namespace drover

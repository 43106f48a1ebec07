#pragma once

// Groups of users of this machine, out of the system's own user database (NSS); blocks. Thread safe.

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace drover {

/// The id of a group, by its name or a decimal gid.
Result<gid_t> find_group(const std::string& name_or_gid);

}  // namespace drover

#pragma once

// Groups of users of this machine, out of the system's own user database (NSS); blocks. A database that
// cannot be asked is an error, and not a group that there is not. Thread safe.

#include <grp.h>
#include <sys/types.h>

#include <functional>
#include <string>

#include "base/result.h"

namespace drover {

/// As getgrnam_r(3).
using AskGroup =
    std::function<int(const char* name, group* entry, char* buffer, std::size_t size, group** found)>;

/// The id of a group, by its name or a decimal gid. kNotFound when there is none; kUnavailable when the
/// database cannot say.
Result<gid_t> find_group(const std::string& name_or_gid, const AskGroup& ask = ::getgrnam_r);

}  // namespace drover

#pragma once

// openat2(2), which glibc has no name for. Thread safe.

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/fd.h"

namespace drover {

/// Opens `path` from the folder `directory` (or AT_FDCWD), resolved as the RESOLVE_* of `resolve` say.
/// O_CLOEXEC is added to `flags`; `mode` counts only for a file that is made. Invalid, with errno, when it
/// fails.
///
/// A walk that may not leave its folder ends at a '..' (EAGAIN) when anything on the machine was renamed or
/// mounted meanwhile: it is tried again, up to a thousand times.
UniqueFd open_path(int directory, const std::string& path, int flags, std::uint64_t resolve, mode_t mode = 0);

}  // namespace drover

#pragma once

// Whether a path is as safe as the files that will lie there: whoever can write to a folder on the way to it
// can put another in its place. Blocks. Thread safe.

#include <string>

#include "base/result.h"

namespace drover {

/// Refuses a folder that is there when it, a link on the way to it, or a folder above it belongs to neither
/// root nor this process's user, or can be written to by others. Those with a sticky bit, such as /tmp, are
/// none of these.
Status check_trusted(const std::string& folder);

}  // namespace drover

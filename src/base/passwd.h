#pragma once

// How the machine's user database (NSS) is asked, and what its answers mean. Blocks. Thread safe.

#include <pwd.h>

#include <cstddef>
#include <functional>

#include "base/result.h"

namespace drover {

/// One of getpwnam_r(3) and its like, with everything but where to put the answer.
using AskPasswd = std::function<int(passwd* entry, char* buffer, std::size_t size, passwd** found)>;

/// Asks with as large a buffer as it takes, and gives what was found to `use`. False when there is no such
/// entry; kUnavailable when the database cannot say.
Result<bool> ask_passwd(const AskPasswd& ask, const std::function<void(const passwd&)>& use);

}  // namespace drover

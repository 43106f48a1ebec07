#pragma once

// Processes by descriptor: a signal reaches the process that was meant, and none that has its number since.
// Thread safe.

#include <sys/types.h>

#include "base/fd.h"

namespace drover {

/// Not valid, with errno, when there is no such process.
UniqueFd open_process(pid_t pid);

/// False, with errno, when it was not sent: ESRCH when the process has ended.
bool send_signal(const UniqueFd& process, int signal);

}  // namespace drover

#pragma once

// What the APIs need to run a command in a task's container.

#include "container/exec.h"

namespace drover::engine {

using container::ExecProcess;
using container::ExecRequest;

}  // namespace drover::engine

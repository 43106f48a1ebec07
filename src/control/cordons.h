#pragma once

// What people have taken out of use for new work. Pure.

#include "placement/node.h"
#include "placement/queues.h"

namespace drover::control {

/// The machine as these rules have it: its GPUs, and itself, are cordoned as they say, and no more.
placement::Node with_cordons(placement::Node node, const placement::Rules& rules);

}  // namespace drover::control

#pragma once

// The loop of a forwarder: whatever comes to a listener goes to its container port on this process's own
// loopback address, and the answers back. One thread.

#include <vector>

#include "container/network/forwarder.h"

namespace drover::container {

/// Returns only when it cannot begin. The sockets are used, not owned.
void relay(const std::vector<Listener>& listeners);

}  // namespace drover::container

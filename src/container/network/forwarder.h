#pragma once

// Carries connections and datagrams that come to ports of the machine into a container's network. A process
// of its own, child of the shim: it goes with it, and lives on when the daemon does not. It needs no rights
// but its sockets', and gives all others up.

#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "container/network/network_plan.h"

namespace drover::container {

/// A socket on the machine's side.
struct Listener {
  UniqueFd socket;
  bool ipv6 = false;
  Forward forward;
};

/// Takes a port on all addresses of the machine. kConflict when somebody has it.
Result<Listener> listen_on(const Forward& forward);

/// Starts it in the network namespace `network`. The result is its pidfd. Only for a process with one thread.
Result<UniqueFd> start_forwarder(const std::vector<Listener>& listeners, int network);

}  // namespace drover::container

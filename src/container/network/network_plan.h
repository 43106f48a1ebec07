#pragma once

// What a container's own network needs: which ports of the machine lead to which of its own, and the files by
// which its programs find names. Pure; thread safe.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/network.h"

namespace drover::container {

/// One port of the machine, all addresses, to one of the container.
struct Forward {
  int host_port = 0;
  int container_port = 0;
  bool udp = false;

  bool operator==(const Forward&) const = default;
};

struct NetworkPlan {
  std::vector<Forward> forwards;

  bool operator==(const NetworkPlan&) const = default;
};

// What slirp4netns gives to every network that it serves, as its manual page says.
inline constexpr const char* kContainerAddress = "10.0.2.100";
inline constexpr const char* kNameServer = "10.0.2.3";

/// `host_ports` in the order of the network's ports; kInvalid when their numbers differ.
Result<NetworkPlan> plan_of(const workload::Network& network, const std::vector<int>& host_ports);

/// /etc/hosts of a container with a network of its own.
std::string hosts_text(std::string_view hostname);
/// /etc/resolv.conf: names are asked where the machine asks, through the container's own way out.
std::string resolver_text(std::string_view of_the_machine);

}  // namespace drover::container

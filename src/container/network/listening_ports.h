#pragma once

// On which TCP ports of this machine somebody listens.

#include <set>
#include <string_view>

namespace drover::container {

/// From the text of /proc/net/tcp or tcp6 (proc(5)): the local ports of lines whose state is LISTEN. What is
/// no such line is passed over.
std::set<int> parse_listening_ports(std::string_view table);

/// In the network namespace of this process, IPv4 and IPv6. Empty where the kernel does not tell.
std::set<int> listening_ports();

}  // namespace drover::container

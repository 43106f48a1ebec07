#include "container/network/network_plan.h"

#include <fmt/format.h>

#include <sstream>

namespace drover::container {

Result<NetworkPlan> plan_of(const workload::Network& network, const std::vector<int>& host_ports) {
  NetworkPlan plan;
  if (host_ports.size() != network.ports.size())
    return fail(ErrorKind::kInternal, fmt::format("The task has {} ports and was given {} of the machine",
                                                  network.ports.size(), host_ports.size()));
  for (std::size_t i = 0; i < host_ports.size(); ++i) {
    const auto& port = network.ports[i];
    const int inside = port.container_port != 0 ? port.container_port : host_ports[i];
    if (port.protocol != workload::PortProtocol::kUdp)
      plan.forwards.push_back({host_ports[i], inside, false});
    if (port.protocol != workload::PortProtocol::kTcp) plan.forwards.push_back({host_ports[i], inside, true});
  }
  return plan;
}

std::string hosts_text(std::string_view hostname) {
  return fmt::format("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n{} {}\n",
                     kContainerAddress, hostname);
}

std::string resolver_text(std::string_view of_the_machine) {
  std::string text = fmt::format("nameserver {}\n", kNameServer);
  std::istringstream lines{std::string(of_the_machine)};
  for (std::string line; std::getline(lines, line);)
    for (const std::string_view kept : {"search ", "domain ", "options "})
      if (line.starts_with(kept)) text += line + "\n";
  return text;
}

}  // namespace drover::container

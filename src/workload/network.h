#pragma once

// How a task is reached over the network. Values.

#include <map>
#include <string>
#include <vector>

namespace drover::workload {

enum class NetworkMode {
  kHost,    ///< the machine's own network
  kBridge,  ///< a network namespace of its own behind the machine's address; host ports are forwarded into it
};

enum class PortProtocol { kTcp, kUdp, kBoth };

/// One port that the machine gives a task. Its number on the machine is in the task's record.
struct Port {
  std::string name;
  PortProtocol protocol = PortProtocol::kTcp;
  int container_port =
      0;              ///< where it listens inside, in bridge mode; 0: the number that it has on the machine
  int host_port = 0;  ///< 0: any free one of the machine's range
  std::map<std::string, std::string> labels;

  bool operator==(const Port&) const = default;
};

struct Network {
  NetworkMode mode = NetworkMode::kHost;
  std::vector<Port> ports;

  bool operator==(const Network&) const = default;
};

}  // namespace drover::workload

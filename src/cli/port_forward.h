#pragma once

// Ports of this machine's loopback address that lead to ports of a task, or to the web page, over the
// connection to the daemon.

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "cli/client.h"

namespace drover::cli {

/// "8888", "9000:8888", "0:http": from where here, and to which port of the task. 0: any that is free.
struct PortPair {
  int here = 0;
  std::string there;  ///< a number or a name
};
Result<PortPair> parse_port_pair(const std::string& text);

class PortForward {
 public:
  /// Listens at the port, 0 for any that is free; each connection asks for `target` and becomes one of
  /// `protocol`. kConflict when the port is taken.
  static Result<PortForward> open(Client client, std::string target, std::string protocol, int here);
  static Result<PortForward> open(Client client, const std::string& task, const PortPair& pair);

  int here() const { return here_; }
  /// Makes a connection to the task and lets go of it. kUnavailable when nobody listens there yet.
  Status probe() const;
  /// Carries connections, each on a thread of its own; what is wrong with one of them is reported. Returns
  /// only when it can accept no more.
  Status serve() const;

 private:
  PortForward(Client client, std::string target, std::string protocol, UniqueFd socket, int here)
      : client_(std::move(client)),
        target_(std::move(target)),
        protocol_(std::move(protocol)),
        socket_(std::move(socket)),
        here_(here) {}

  Client client_;
  std::string target_;
  std::string protocol_;
  UniqueFd socket_;
  int here_;
};

}  // namespace drover::cli

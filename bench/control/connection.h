#pragma once

// A client that costs next to nothing: one connection over loopback that is kept open, with one request at a
// time. Throws std::runtime_error when the other end does not answer as HTTP/1.1 does.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace drover::bench {

/// A socket that is connected to a port of loopback.
UniqueFd connect_to(std::uint16_t port);
void send_all(int socket, std::string_view bytes);

struct Answer {
  int status = 0;
  std::string body;
};

class Connection {
 public:
  explicit Connection(std::uint16_t port) : port_(port), socket_(connect_to(port)) {}

  /// An answer has its length in its header. `accept`: in which language it is to be.
  Answer ask(std::string_view method, const std::string& target, std::string_view body = "",
             std::string_view accept = "");

 private:
  std::uint16_t port_;
  UniqueFd socket_;
  std::string buffer_;  // kept between answers: to grow it again and again would be measured too
};

}  // namespace drover::bench

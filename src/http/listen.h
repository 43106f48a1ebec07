#pragma once

// Where a server listens, and listening there.

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace drover::http {

/// "127.0.0.1:8080", "[::1]:8080", "gpu1:8080"; port 0 lets the kernel choose.
struct ListenAddress {
  std::string host;  ///< without brackets
  std::uint16_t port = 0;

  bool operator==(const ListenAddress&) const = default;
};
Result<ListenAddress> parse_listen_address(std::string_view text);
/// With brackets around an IPv6 address.
std::string to_string(const ListenAddress& address);

/// "host", "host:port", "[v6]:port" into its parts; a missing port is the default, or a mistake without one.
std::optional<ListenAddress> split_host(std::string_view text, std::optional<std::uint16_t> default_port);

/// kInvalid for an address that this machine does not have, kConflict for one that is taken. `context`
/// outlives the answer.
Result<boost::asio::ip::tcp::acceptor> listen_tcp(boost::asio::io_context& context,
                                                  const ListenAddress& address);

}  // namespace drover::http

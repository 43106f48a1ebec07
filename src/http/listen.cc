#include "http/listen.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <charconv>

namespace drover::http {
namespace {

using boost::asio::ip::tcp;

bool is_visible(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

std::optional<ListenAddress> split_host(std::string_view text, std::optional<std::uint16_t> default_port) {
  std::string_view host = text;
  std::string_view rest;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
  } else if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    rest = text.substr(colon);
  }
  if (host.empty() || !is_visible(host)) return std::nullopt;
  ListenAddress address{std::string(host), default_port.value_or(0)};
  if (rest.empty()) return default_port ? std::optional(address) : std::nullopt;
  if (rest.size() < 2 || rest.front() != ':') return std::nullopt;
  const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), address.port);
  if (error != std::errc() || end != rest.data() + rest.size()) return std::nullopt;
  return address;
}

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const auto address = split_host(text, std::nullopt);
  if (!address)
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not an address to listen on", text),
                "write HOST:PORT, for example 127.0.0.1:8080 or [::1]:8080");
  return *address;
}

std::string to_string(const ListenAddress& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", address.host, address.port)
            : fmt::format("{}:{}", address.host, address.port);
}

Result<tcp::acceptor> listen_tcp(boost::asio::io_context& context, const ListenAddress& address) {
  const auto what = fmt::format("Failed to listen on '{}'", to_string(address));
  boost::system::error_code error;
  tcp::resolver resolver(context);
  const auto found = resolver.resolve(address.host, std::to_string(address.port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty())
    return fail(ErrorKind::kInvalid,
                fmt::format("{}: '{}' is not an address of this machine", what, address.host));
  tcp::acceptor acceptor(context);
  const auto endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
  if (error)
    return fail(ErrorKind::kConflict, what + ": " + error.message(), "choose another port or address");
  return acceptor;
}

}  // namespace drover::http

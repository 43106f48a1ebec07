#pragma once

// HTTP/1.1 as a client, over a unix socket, TCP or TLS: one request a connection. Errors are codes, since
// callers have words of their own for them. The head of an answer has a limit here; whoever reads a body says
// how much of it is taken. Used by one thread at a time. Heavy (Boost.Beast): for `.cc` files. Files and
// registries, over proxies, are for base/http_client.h.

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "base/fd.h"
#include "http/request.h"

namespace drover::http {

using boost::system::error_code;
/// None: as long as it takes.
using TimeLimit = std::optional<std::chrono::milliseconds>;

/// What a server says, in whatever pieces it comes.
class AnswerReader {
 public:
  AnswerReader();

  /// What came next. An error when it is no HTTP, or its head too long.
  error_code receive(std::string_view bytes);
  /// No more comes. An error when it breaks off.
  error_code finish();

  int status() const;  ///< 0 until the head is there
  /// Of the head; "" when it has no such field.
  std::string header(std::string_view name) const;
  /// What has come since the last call: of the body, or after an upgrade (status 101) of the other protocol.
  std::string take();
  bool ended() const { return closed_ || (parser_.is_done() && !upgraded_); }

 private:
  boost::beast::http::response_parser<boost::beast::http::buffer_body> parser_;
  std::string unread_;
  std::string body_;
  bool begun_ = false;  ///< as an answer does
  bool upgraded_ = false;
  bool closed_ = false;
};

enum class Tls {
  kNone,
  kAnybody,  ///< no certificate is verified
  kTrusted,  ///< one for the host, by an authority that this machine trusts
};

struct Server {
  std::string socket = {};  ///< path of a unix socket; "" for TCP
  std::string host = {};    ///< a name or an address, IPv6 without brackets
  std::uint16_t port = 0;
  Tls tls = Tls::kNone;
  /// Of the host's addresses; none: all. Only what was asked for is connected to.
  std::function<bool(const boost::asio::ip::address&)> may_reach = {};
};

class Connection {
 public:
  /// Takes a piece of a body; false ends the reading without an error.
  using Sink = std::function<bool(std::string_view piece)>;

  explicit Connection(boost::asio::any_io_executor executor);
  /// `connected`: a stream socket.
  Connection(boost::asio::any_io_executor executor, UniqueFd connected);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Connects, and agrees on TLS. From when the address is known on, all that is done with the connection has
  /// so long together. A place in the queue of a unix socket is waited for on this thread.
  /// asio::error::access_denied when no address may be reached.
  boost::asio::awaitable<error_code> open(Server server, TimeLimit time);
  /// From now on, instead of what was said before.
  void expire_after(TimeLimit time);
  /// Sends the request and waits for the head of the answer.
  boost::asio::awaitable<error_code> ask(Request request);
  AnswerReader& answer();
  /// Gives the body to `sink` as it comes. With a `silence` each piece has so long.
  boost::asio::awaitable<error_code> read_body(Sink sink, TimeLimit silence = {});
  /// What waits for the server ends with an error.
  void close();
  /// The socket, for blocking use. Not with TLS.
  UniqueFd release();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Waits so long for a place in the server's queue. A blocking socket.
tl::expected<UniqueFd, error_code> connect_unix(const std::string& path, TimeLimit time);

/// Whether the time was over that something had.
bool is_late(const error_code& error);

}  // namespace drover::http

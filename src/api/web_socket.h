#pragma once

// A connection that has left HTTP for messages of both sides (RFC 6455): browsers keep only six others to one
// server, for all of its pages together, and a live answer takes one for as long as it lives. Used on the
// control strand only.

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <cstddef>
#include <string>

#include "api/http.h"

namespace drover::api {

/// Takes messages of any kind; what it writes are binary ones.
class WebSocket final : public Duplex {
 public:
  using Connection = boost::beast::basic_stream<asio::generic::stream_protocol>;

  /// `connection` outlives it. No message may be longer than `most_bytes`.
  WebSocket(Connection& connection, std::size_t most_bytes);

  /// Answers the request that asks for it. Throws, as all of these do, when the client is gone or breaks the
  /// protocol.
  asio::awaitable<void> accept(const boost::beast::http::request<boost::beast::http::string_body>& request);
  asio::awaitable<void> say(std::string text);
  asio::awaitable<void> write(std::string piece) override;
  asio::awaitable<std::string> read() override;
  /// Returns when the client is gone; what he says is passed over.
  asio::awaitable<void> wait_for_end();
  /// Says that this was all.
  asio::awaitable<void> close();

 private:
  boost::beast::websocket::stream<Connection&> stream_;
  boost::beast::flat_buffer buffer_;
};

}  // namespace drover::api

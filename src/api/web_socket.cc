#include "api/web_socket.h"

#include <boost/asio/use_awaitable.hpp>

#include "base/as_tuple.h"

namespace drover::api {

namespace websocket = boost::beast::websocket;

namespace {

/// A browser answers pings by itself, so that whoever is silent for this long is gone.
websocket::stream_base::timeout patience() {
  return {std::chrono::seconds(10), std::chrono::seconds(60), true};
}

}  // namespace

WebSocket::WebSocket(Connection& connection, std::size_t most_bytes) : stream_(connection) {
  connection.expires_never();
  stream_.set_option(patience());
  stream_.read_message_max(most_bytes);
}

asio::awaitable<void> WebSocket::accept(
    const boost::beast::http::request<boost::beast::http::string_body>& request) {
  co_await stream_.async_accept(request, asio::use_awaitable);
}

asio::awaitable<void> WebSocket::say(std::string text) {
  stream_.text(true);
  co_await stream_.async_write(asio::buffer(text), asio::use_awaitable);
}

asio::awaitable<void> WebSocket::write(std::string piece) {
  if (piece.empty()) co_return;
  stream_.binary(true);
  co_await stream_.async_write(asio::buffer(piece), asio::use_awaitable);
}

asio::awaitable<std::string> WebSocket::read() {
  buffer_.clear();
  const auto [error, size] = co_await stream_.async_read(buffer_, kAsTuple);
  if (error) co_return std::string();
  co_return std::string(static_cast<const char*>(buffer_.cdata().data()), size);
}

asio::awaitable<void> WebSocket::wait_for_end() {
  boost::system::error_code error;
  while (!error) {
    buffer_.clear();
    error = std::get<0>(co_await stream_.async_read(buffer_, kAsTuple));
  }
}

asio::awaitable<void> WebSocket::close() {
  (void)co_await stream_.async_close(websocket::close_code::normal, kAsTuple);
}

}  // namespace drover::api

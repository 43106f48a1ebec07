// Requests of a browser whose answers live long: each in a WebSocket of its own. Its first message says what
// a header says elsewhere, since a page can set none for a WebSocket.

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include "api/session.h"
#include "api/web_socket.h"
#include "base/decode.h"
#include "base/json_text.h"

namespace drover::api {
namespace {

using nlohmann::json;

struct SocketOrder {
  http::request<http::string_body> message;
  std::string authorization;
};

/// {"method", "path", "authorization", "body", "last_event_id", "protocol"}
Result<SocketOrder> decode_order(const std::string& text) {
  DROVER_TRY(const auto value, parse_json(text, "The first message"));
  std::vector<Error> mistakes;
  Decoder decoder(value, mistakes);
  SocketOrder order;
  auto& message = order.message;
  message.version(11);
  const auto method = decoder.string("method").value_or("GET");
  if (method.empty())
    decoder.mistake("method", "expected a method, found none");
  else
    message.method_string(method);
  message.target(decoder.string("path").value_or("/"));
  order.authorization = decoder.string("authorization").value_or("");
  if (const auto id = decoder.string("last_event_id")) message.set("Last-Event-ID", *id);
  if (const auto protocol = decoder.string("protocol")) {
    message.set(http::field::connection, "upgrade");
    message.set(http::field::upgrade, *protocol);
  }
  if (const auto* body = decoder.value("body")) {
    message.set(http::field::content_type, "application/json");
    message.body() = to_text(*body);
  }
  decoder.finish();
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "The first message"));
  return order;
}

}  // namespace

asio::awaitable<void> Session::serve_socket(const Message& handshake, const Asker& known) {
  using namespace asio::experimental::awaitable_operators;
  interruptible_ = true;
  WebSocket socket(stream_, shared_->limits.body_bytes);
  co_await socket.accept(handshake);
  asio::steady_timer timer(stream_.get_executor(), shared_->limits.header_time);
  const auto first = co_await (socket.read() || timer.async_wait(kAsTuple));
  if (first.index() != 0) co_return stream_.close();
  auto order = decode_order(std::get<0>(first));
  auto asker = !order                         ? Result<Asker>(Failure(order.error()))
               : order->authorization.empty() ? Result<Asker>(known)
                                              : co_await admit_known(order->authorization);
  if (asker && asker->is_stranger())
    asker = fail(ErrorKind::kUnauthenticated, "The first message shows no secret");
  if (!asker) {
    const auto refusal = error_response(asker.error());
    co_await socket.say(to_text(json{{"status", refusal.status}, {"body", refusal.body}}));
    co_return co_await socket.close();
  }
  co_await answer_socket(socket, order->message, *asker);
}

asio::awaitable<void> Session::answer_socket(WebSocket& socket, const Message& message, const Asker& asker) {
  using namespace asio::experimental::awaitable_operators;
  auto response = co_await answer(message, asker);
  if (response.opens_socket || response.opens_page)
    response = error_response({ErrorKind::kInvalid, "There is no way from a WebSocket to there", "", ""});
  note(message, asker, response);
  json head = {{"status", response.status}};
  if (!response.stream && !response.upgrade) head["body"] = std::move(response.body);
  co_await socket.say(to_text(head));
  if (response.upgrade) co_await response.upgrade(socket);
  if (response.stream) {
    std::exception_ptr failure;
    const auto ended = co_await (stream_of(response, socket, failure) || socket.wait_for_end());
    if (ended.index() != 0) co_return;
    if (failure) std::rethrow_exception(failure);
  }
  co_await socket.close();
}

}  // namespace drover::api

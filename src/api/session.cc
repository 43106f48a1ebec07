#include "api/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/write.hpp>

#include "api/async.h"
#include "api/workers.h"
#include "base/text.h"
#include "base/units.h"
#include "control/executors.h"

namespace drover::api {
namespace {

constexpr std::chrono::seconds kPatienceWithRefused{5};

Response too_large(std::uint64_t limit) {
  return error_response({ErrorKind::kInvalid, fmt::format("The body is larger than {} bytes", limit), "", ""},
                        413);
}

/// The answer to a request that could not even be read; nullopt when there is nobody to answer.
std::optional<Response> unreadable(const boost::system::error_code& error, const Limits& limits) {
  if (error == asio::error::timed_out)
    return error_response({ErrorKind::kTimeout, "The request did not arrive in time",
                           fmt::format("send its header within {} s and its body within {} s",
                                       limits.header_time.count(), limits.body_time.count()),
                           ""},
                          408);
  if (error == http::error::header_limit)
    return error_response(
        {ErrorKind::kInvalid, fmt::format("The header is larger than {} bytes", limits.header_bytes), "", ""},
        431);
  if (error.category() == http::make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message)
    return error_response({ErrorKind::kInvalid, "This is not HTTP/1.1: " + error.message(), "", ""});
  return std::nullopt;
}

std::string header_value(const http::fields& header, http::field name) {
  const auto found = header.find(name);
  return found == header.end() ? "" : std::string(found->value());
}

Result<Request> to_request(const http::request<http::string_body>& message) {
  Request request;
  request.method = std::string(message.method_string());
  request.content_type = header_value(message, http::field::content_type);
  for (const auto& field : message) {
    std::string name(field.name_string());
    for (auto& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (name != "authorization" && !equal_without_case(name, kProxiedAuthorization))
      request.headers.insert_or_assign(std::move(name), std::string(field.value()));
  }
  if (const auto id = message.find("Last-Event-ID"); id != message.end())
    request.last_event_id = std::string(id->value());
  request.body = message.body();
  DROVER_CHECK_OK(parse_target({message.target().data(), message.target().size()}, request));
  return request;
}

void fill_head(http::fields& head, const Response& response) {
  head.set(http::field::server, "drover");
  head.set(http::field::cache_control, "no-store");
  head.set("X-Content-Type-Options", "nosniff");
  if (!response.content_type.empty() && response.status != 204)
    head.set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) head.set(name, value);
}

/// What a reading operation came to; timed_out when `longest` went by first. The connection stays usable.
asio::awaitable<boost::system::error_code> within(
    std::chrono::seconds longest,
    asio::awaitable<std::tuple<boost::system::error_code, std::size_t>> reading) {
  using namespace asio::experimental::awaitable_operators;
  asio::steady_timer timer(co_await asio::this_coro::executor, longest);
  const auto first = co_await (std::move(reading) || timer.async_wait(kAsTuple));
  if (first.index() != 0) co_return asio::error::timed_out;
  co_return std::get<0>(std::get<0>(first));
}

}  // namespace

Session::Session(Socket socket, std::shared_ptr<const Shared> shared, std::optional<engine::Caller> peer,
                 std::string address)
    : stream_(std::move(socket)),
      pause_(stream_.get_executor()),
      shared_(std::move(shared)),
      peer_(std::move(peer)),
      address_(std::move(address)) {}

asio::awaitable<void> Session::run() {
  while (!stopping_ && co_await serve_one()) {
  }
  boost::system::error_code ignored;
  stream_.socket().shutdown(asio::socket_base::shutdown_send, ignored);
  if (unread_) co_await discard_rest();
}

asio::awaitable<void> Session::refuse(Error error) {
  stream_.expires_after(shared_->limits.write_time);
  http::request<http::string_body> none;
  none.version(11);
  none.keep_alive(false);
  co_await send(error_response(error), none);
}

void Session::stop() {
  stopping_ = true;
  pause_.cancel();
  if (interruptible_) stream_.close();
}

asio::awaitable<bool> Session::wait_for_request() {
  using namespace asio::experimental::awaitable_operators;
  if (buffer_.size() != 0) co_return true;
  buffer_.shrink_to_fit();
  asio::steady_timer timer(stream_.get_executor(), shared_->limits.idle_time);
  const auto first = co_await (stream_.socket().async_wait(asio::socket_base::wait_read, kAsTuple) ||
                               timer.async_wait(kAsTuple));
  co_return first.index() == 0 && !std::get<0>(std::get<0>(first));
}

asio::awaitable<boost::system::error_code> Session::read_header(Parser& parser) {
  parser.header_limit(shared_->limits.header_bytes);
  parser.body_limit(boost::none);  // known when the header was read
  stream_.expires_never();
  co_return co_await within(shared_->limits.header_time,
                            http::async_read_header(stream_, buffer_, parser, kAsTuple));
}

namespace {

/// Frameworks call often, and what they do is told task by task.
bool may_change(const http::request_header<>& header) {
  const auto method = header.method();
  const std::string_view target(header.target().data(), header.target().size());
  return method != http::verb::get && method != http::verb::head && method != http::verb::options &&
         target.find("/api/v1/scheduler") == std::string_view::npos;
}

/// What is no word of this length could pretend to be another line, or fill the log.
bool is_short_word(std::string_view text) {
  constexpr std::size_t kLongest = 128;
  return !text.empty() && text.size() <= kLongest &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

std::string audit_line(const User& user, const http::request_header<>& header, const Response& response) {
  constexpr std::size_t kLongestPath = 256;
  std::string_view path(header.target().data(), header.target().size());
  path = path.substr(0, std::min(path.find('?'), kLongestPath));  // what is asked for may be a secret
  const std::string_view method(header.method_string().data(), header.method_string().size());
  auto line = fmt::format("audit user={} uid={} method={} path={} status={}", user.name, user.uid, method,
                          path, response.status);
  for (const auto& [name, value] : response.headers)
    if (name == "Location") line += " made=" + value;
  const auto id = header["X-Request-Id"];
  if (const std::string_view text(id.data(), id.size()); is_short_word(text))
    line += fmt::format(" request={}", text);
  return line;
}

}  // namespace

/// False when the connection is to be closed.
asio::awaitable<bool> Session::serve_one() {
  if (!co_await wait_for_request()) co_return false;
  Parser parser;
  const auto error = co_await read_header(parser);
  interruptible_ = false;
  std::optional<Response> response;
  Asker asker;
  const auto& caller = asker.caller;
  bool rest_unread = true;
  if (error) {
    response = unreadable(error, shared_->limits);
    if (!response) co_return false;
  } else if (auto admitted = co_await admit(parser.get().base()); !admitted) {
    response = error_response(admitted.error());
  } else {
    asker = std::move(*admitted);
    // A stranger's body is not read: no open route takes one.
    if (!asker.is_stranger() || parser.is_done()) {
      response = co_await read_body(parser);
      rest_unread = response.has_value();
    }
  }
  auto& message = parser.get();
  if (rest_unread) message.keep_alive(false);
  unread_ = rest_unread;
  if (!response) response = co_await answer(message, asker);
  note(message, asker, *response);
  if (response->opens_socket) {
    co_await serve_socket(message, asker);
    co_return false;
  }
  const bool keep_alive = message.keep_alive() && !stopping_;
  const bool opens_page = response->opens_page;
  message.keep_alive(keep_alive);
  co_await send(std::move(*response), message);
  interruptible_ = true;
  if (opens_page) {
    page_of_ = caller;
    peer_.reset();
  }
  co_return keep_alive && !stopping_;
}

void Session::note(const Message& message, const Asker& asker, const Response& response) {
  ++shared_->services.tally->answers[response.status];
  if (shared_->audit && asker.caller && may_change(message) && !response.read_only)
    shared_->audit(audit_line(asker.caller->user, message, response));
}

/// To what was read whole, when it is the caller's turn.
asio::awaitable<Response> Session::answer(const Message& message, const Asker& asker) {
  auto request = to_request(message);
  if (!request) co_return error_response(request.error());
  request->caller = asker.caller;
  request->executor = asker.executor;
  request->logged_in = asker.logged_in;
  request->metrics_reader = asker.metrics_reader;
  const auto began = std::chrono::steady_clock::now();
  const auto turn = asker.caller ? co_await await_turn(*asker.caller) : Status();
  if (!turn) co_return error_response(turn.error());
  auto response = co_await route(shared_->routes, shared_->services, std::move(*request));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
  shared_->services.tally->answer_times.observe(taken.count());
  if (asker.caller && !response.share)
    response.share =
        shared_->answers->begin(asker.caller->user.uid, response.body.size(), AnswerShares::Clock::now());
  co_return response;
}

asio::awaitable<std::optional<Response>> Session::read_body(Parser& parser) {
  if (parser.is_done()) co_return std::nullopt;
  const auto& message = parser.get();
  Request request;
  request.method = std::string(message.method_string());
  std::uint64_t limit = shared_->limits.body_bytes;
  if (parse_target({message.target().data(), message.target().size()}, request))
    limit = std::max(limit, body_limit(shared_->routes, request));
  if (parser.content_length().value_or(0) > limit) co_return too_large(limit);
  parser.body_limit(limit);
  stream_.expires_after(shared_->limits.write_time);
  if (header_value(parser.get(), http::field::expect) == "100-continue") {
    const std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    co_await asio::async_write(stream_, asio::buffer(go_on), asio::use_awaitable);
  }
  stream_.expires_never();
  const auto error =
      co_await within(shared_->limits.body_time, http::async_read(stream_, buffer_, parser, kAsTuple));
  if (!error) co_return std::nullopt;
  if (error == http::error::body_limit) co_return too_large(limit);
  if (auto response = unreadable(error, shared_->limits)) co_return response;
  throw boost::system::system_error(error);
}

asio::awaitable<Status> Session::await_turn(const engine::Caller& caller) {
  const auto& answers = shared_->answers;
  const auto until = AnswerShares::Clock::now() + AnswerShares::kPatience;
  while (true) {
    const auto now = AnswerShares::Clock::now();
    const auto wait = answers->wait(caller.user.uid, now);
    if (wait <= wait.zero() || stopping_) co_return Status();
    if (now > until) co_return Failure(answers->refusal(caller.user));
    co_await pause_until(std::min(now + wait, until + wait));
  }
}

asio::awaitable<void> Session::pause_until(std::chrono::steady_clock::time_point then) {
  if (stopping_) co_return;
  pause_.expires_at(then);
  co_await pause_.async_wait(kAsTuple);
}

asio::awaitable<void> Session::send(Response response, const http::request<http::string_body>& request) {
  stream_.expires_after(shared_->limits.write_time);
  const bool head_only = request.method() == http::verb::head;
  if (response.upgrade || response.opens_page) {
    http::response<http::empty_body> head(http::status::switching_protocols, request.version());
    fill_head(head, response);
    if (response.opens_page) {
      http::serializer<false, http::empty_body> serializer(head);
      co_await http::async_write_header(stream_, serializer, asio::use_awaitable);
      co_return;
    }
    co_await leave_http(response, std::move(head));
    co_return;
  }
  if (response.stream) {
    http::response<http::empty_body> head(static_cast<http::status>(response.status), request.version());
    fill_head(head, response);
    head.keep_alive(request.keep_alive());
    chunked_ = !response.stream_length && request.version() >= 11;
    if (response.stream_length) head.content_length(*response.stream_length);
    if (chunked_) head.chunked(true);
    if (!chunked_ && !response.stream_length) head.keep_alive(false);
    co_await send_stream(response, std::move(head), head_only);
    co_return;
  }
  http::response<http::string_body> message(static_cast<http::status>(response.status), request.version());
  fill_head(message, response);
  message.keep_alive(request.keep_alive());
  message.body() = std::move(response.body);
  message.prepare_payload();
  http::serializer<false, http::string_body> serializer(message);
  if (head_only)
    co_await http::async_write_header(stream_, serializer, asio::use_awaitable);
  else
    co_await http::async_write(stream_, serializer, asio::use_awaitable);
}

/// The operator || waits for the one that succeeds: after a failure of the answer, for the client to hang up.
asio::awaitable<void> Session::stream_of(Response& response, BodyWriter& writer,
                                         std::exception_ptr& failure) {
  try {
    co_await response.stream(writer);
  } catch (...) {
    failure = std::current_exception();
  }
}

asio::awaitable<void> Session::send_stream(Response& response, http::response<http::empty_body> head,
                                           bool head_only) {
  using namespace asio::experimental::awaitable_operators;
  http::serializer<false, http::empty_body> serializer(head);
  co_await http::async_write_header(stream_, serializer, asio::use_awaitable);
  if (head_only) co_return;
  if (stopping_) throw boost::system::system_error(asio::error::operation_aborted);
  interruptible_ = true;
  std::exception_ptr failure;
  const auto ended = co_await (stream_of(response, *this, failure) || wait_for_hangup());
  interruptible_ = false;
  if (ended.index() != 0) throw boost::system::system_error(asio::error::connection_reset);
  if (failure) std::rethrow_exception(failure);
  stream_.expires_after(shared_->limits.write_time);
  if (chunked_) co_await asio::async_write(stream_, http::make_chunk_last(), asio::use_awaitable);
}

asio::awaitable<void> Session::leave_http(Response& response, http::response<http::empty_body> head) {
  http::serializer<false, http::empty_body> serializer(head);
  co_await http::async_write_header(stream_, serializer, asio::use_awaitable);
  if (stopping_) throw boost::system::system_error(asio::error::operation_aborted);
  upgraded_ = true;
  stopping_ = true;  // it is of no use for another request
  interruptible_ = true;
  co_await response.upgrade(*this);
}

asio::awaitable<std::string> Session::read() {
  if (buffer_.size() == 0) {
    stream_.expires_never();
    const auto [error, size] = co_await stream_.async_read_some(buffer_.prepare(65536), kAsTuple);
    if (error) co_return std::string();
    buffer_.commit(size);
  }
  const auto bytes = buffer_.cdata();
  std::string piece(static_cast<const char*>(bytes.data()), bytes.size());
  buffer_.consume(buffer_.size());
  co_return piece;
}

asio::awaitable<void> Session::write(std::string piece) {
  if (piece.empty()) co_return;
  // Whoever has a terminal may hold its output for as long as he likes.
  if (upgraded_)
    stream_.expires_never();
  else
    stream_.expires_after(shared_->limits.write_time);
  const auto buffer = asio::buffer(piece);
  if (chunked_)
    co_await asio::async_write(stream_, http::make_chunk(buffer), asio::use_awaitable);
  else
    co_await asio::async_write(stream_, buffer, asio::use_awaitable);
}

/// A client that is still sending would never see our refusal: closing with unread input resets the
/// connection.
asio::awaitable<void> Session::discard_rest() {
  std::array<char, 65536> scrap;
  stream_.expires_after(kPatienceWithRefused);
  while (true) co_await stream_.async_read_some(asio::buffer(scrap), asio::use_awaitable);
}

/// Returns when the client is gone, although nothing is being written.
asio::awaitable<void> Session::wait_for_hangup() {
  auto& socket = stream_.socket();
  char byte = 0;
  while (true) {
    auto [error] = co_await socket.async_wait(asio::socket_base::wait_read, kAsTuple);
    if (!error) socket.receive(asio::buffer(&byte, 1), asio::socket_base::message_peek, error);
    if (error) co_return;
    // The next request is there already: nothing can be learnt from this socket until it is read.
    asio::steady_timer forever(stream_.get_executor(), asio::steady_timer::time_point::max());
    co_await forever.async_wait(asio::use_awaitable);
  }
}

}  // namespace drover::api

#include "http/client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/http/error.hpp>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/as_tuple.h"

namespace drover::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using Generic = asio::generic::stream_protocol;
using Stream = beast::basic_stream<Generic>;

constexpr std::uint32_t kLongestHead = 64 << 10;
constexpr std::string_view kBegin = "HTTP/";
constexpr std::size_t kPiece = 32 << 10;

asio::ssl::context make_context(asio::ssl::verify_mode mode) {
  asio::ssl::context made(asio::ssl::context::tls_client);
  made.set_verify_mode(mode);
  error_code ignored;  // then nobody is trusted
  if (mode != asio::ssl::verify_none) made.set_default_verify_paths(ignored);
  return made;
}

asio::ssl::context& context_of(Tls tls) {
  static auto anybody = make_context(asio::ssl::verify_none);
  if (tls == Tls::kAnybody) return anybody;
  static auto trusted = make_context(asio::ssl::verify_peer);
  return trusted;
}

/// What may be reached of a server on TCP.
asio::awaitable<error_code> find_places(const Server& server, std::vector<Generic::endpoint>& places) {
  const auto add = [&](const tcp::endpoint& place) {
    if (!server.may_reach || server.may_reach(place.address())) places.emplace_back(place);
  };
  error_code is_name;
  const auto address = asio::ip::make_address(server.host, is_name);
  if (!is_name) {
    add({address, server.port});
  } else {
    tcp::resolver resolver(co_await asio::this_coro::executor);
    const auto [unknown, found] =
        co_await resolver.async_resolve(server.host, std::to_string(server.port), kAsTuple);
    if (unknown) co_return unknown;
    for (const auto& entry : found) add(entry.endpoint());
  }
  co_return places.empty() ? asio::error::access_denied : error_code();
}

void limit_connecting(int socket, TimeLimit limit) {
  const auto whole = limit ? std::max(*limit, std::chrono::milliseconds(1)) : std::chrono::milliseconds(0);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(whole);
  const timeval time{seconds.count(), std::chrono::microseconds(whole - seconds).count()};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

}  // namespace

std::string to_text(const Request& request) {
  auto head = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, request.target, request.host);
  for (const auto& [name, value] : request.headers) head += fmt::format("{}: {}\r\n", name, value);
  if (!request.body.empty()) head += "Content-Type: application/json\r\n";
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT")
    head += fmt::format("Content-Length: {}\r\n", request.body.size());
  head += request.upgrade.empty() ? "Connection: close\r\n"
                                  : fmt::format("Connection: Upgrade\r\nUpgrade: {}\r\n", request.upgrade);
  return head + "\r\n" + request.body;
}

AnswerReader::AnswerReader() {
  parser_.header_limit(kLongestHead);
  parser_.body_limit(boost::none);
}

error_code AnswerReader::receive(std::string_view bytes) {
  if (ended()) return {};
  (upgraded_ ? body_ : unread_) += bytes;
  if (!begun_) {
    // Beast only looks at the first piece before it waits for the end of the head.
    const auto length = std::min(unread_.size(), kBegin.size());
    if (unread_.compare(0, length, kBegin, 0, length) != 0) return beast::http::error::bad_version;
    begun_ = length == kBegin.size();
  }
  std::array<char, kPiece> piece;
  error_code error;
  while (!error && !unread_.empty() && !parser_.is_done()) {
    auto& into = parser_.get().body();
    into.data = piece.data();
    into.size = piece.size();
    unread_.erase(0, parser_.put(asio::buffer(unread_), error));
    body_.append(piece.data(), piece.size() - into.size);
    if (error == beast::http::error::need_buffer) error = {};
  }
  if (error == beast::http::error::need_more) error = {};
  if (unread_.size() > kLongestHead && !parser_.is_done()) error = beast::http::error::header_limit;
  if (status() == 101) {
    upgraded_ = true;
    body_ += std::exchange(unread_, {});
  }
  return error;
}

error_code AnswerReader::finish() {
  if (ended()) return {};
  if (!parser_.got_some()) return beast::http::error::end_of_stream;
  error_code error;
  if (upgraded_)
    closed_ = true;
  else
    parser_.put_eof(error);
  return error;
}

int AnswerReader::status() const {
  return parser_.is_header_done() ? static_cast<int>(parser_.get().result_int()) : 0;
}

std::string AnswerReader::header(std::string_view name) const {
  return std::string(parser_.get()[beast::string_view(name.data(), name.size())]);
}

std::string AnswerReader::take() {
  return std::exchange(body_, {});
}

struct Connection::Parts {
  explicit Parts(asio::any_io_executor executor) : stream(std::move(executor)) {}

  Stream stream;
  std::optional<asio::ssl::stream<Stream&>> tls;
  AnswerReader answer;

  error_code adopt(UniqueFd connected) {
    int family = 0;
    socklen_t size = sizeof family;
    ::getsockopt(connected.get(), SOL_SOCKET, SO_DOMAIN, &family, &size);
    error_code error;
    stream.socket().assign({family, 0}, connected.get(), error);
    if (!error) connected.release();
    return error;
  }

  asio::awaitable<error_code> receive() {
    std::string piece(kPiece, '\0');
    const auto [error, count] = tls ? co_await tls->async_read_some(asio::buffer(piece), kAsTuple)
                                    : co_await stream.async_read_some(asio::buffer(piece), kAsTuple);
    if (error == asio::error::eof) co_return answer.finish();
    co_return error ? error : answer.receive(std::string_view(piece).substr(0, count));
  }
};

Connection::Connection(asio::any_io_executor executor)
    : parts_(std::make_unique<Parts>(std::move(executor))) {}

Connection::Connection(asio::any_io_executor executor, UniqueFd connected) : Connection(std::move(executor)) {
  (void)parts_->adopt(std::move(connected));  // then all that is done with it fails
}

Connection::~Connection() = default;

asio::awaitable<error_code> Connection::open(Server server, TimeLimit time) {
  auto& stream = parts_->stream;
  if (!server.socket.empty()) {
    auto connected = connect_unix(server.socket, time);
    if (!connected) co_return connected.error();
    expire_after(time);
    co_return parts_->adopt(std::move(*connected));
  }
  std::vector<Generic::endpoint> places;
  if (const auto error = co_await find_places(server, places)) co_return error;
  expire_after(time);
  if (const auto [error, place] = co_await stream.async_connect(places, kAsTuple); error) co_return error;
  error_code ignored;
  stream.socket().set_option(tcp::no_delay(true), ignored);
  if (server.tls == Tls::kNone) co_return error_code();
  auto& tls = parts_->tls.emplace(stream, context_of(server.tls));
  if (server.tls == Tls::kTrusted) {
    tls.set_verify_callback(asio::ssl::host_name_verification(server.host));
    SSL_set_tlsext_host_name(tls.native_handle(), server.host.c_str());
  }
  const auto [error] = co_await tls.async_handshake(asio::ssl::stream_base::client, kAsTuple);
  co_return error;
}

void Connection::expire_after(TimeLimit time) {
  if (time)
    parts_->stream.expires_after(*time);
  else
    parts_->stream.expires_never();
}

asio::awaitable<error_code> Connection::ask(Request request) {
  const auto text = to_text(request);
  auto& tls = parts_->tls;
  const auto [failed, sent] = tls ? co_await asio::async_write(*tls, asio::buffer(text), kAsTuple)
                                  : co_await asio::async_write(parts_->stream, asio::buffer(text), kAsTuple);
  if (failed) co_return failed;
  while (answer().status() == 0)
    if (const auto error = co_await parts_->receive()) co_return error;
  co_return error_code();
}

AnswerReader& Connection::answer() {
  return parts_->answer;
}

asio::awaitable<error_code> Connection::read_body(Sink sink, TimeLimit silence) {
  while (true) {
    if (const auto piece = answer().take(); !piece.empty() && !sink(piece)) co_return error_code();
    if (answer().ended()) co_return error_code();
    if (silence) expire_after(silence);
    if (const auto error = co_await parts_->receive()) co_return error;
  }
}

void Connection::close() {
  parts_->stream.close();
}

UniqueFd Connection::release() {
  UniqueFd socket(parts_->stream.socket().release());
  ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
  return socket;
}

tl::expected<UniqueFd, error_code> connect_unix(const std::string& path, TimeLimit time) {
  const auto failed = [](int code) {
    return tl::unexpected(error_code(code, boost::system::system_category()));
  };
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return failed(ENAMETOOLONG);
  path.copy(static_cast<char*>(address.sun_path), path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return failed(errno);
  limit_connecting(socket.get(), time);
  // Not Asio's: one that does not block is not given a place in a queue that is full.
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failed(errno == EAGAIN ? ETIMEDOUT : errno);
  limit_connecting(socket.get(), {});
  return socket;
}

bool is_late(const error_code& error) {
  return error == beast::error::timeout || error == asio::error::timed_out;
}

}  // namespace drover::http

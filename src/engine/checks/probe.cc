#include "engine/checks/probe.h"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>

#include "base/as_tuple.h"
#include "base/units.h"

namespace drover::engine {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::uint32_t kHeaderLimit = 32 << 10;
constexpr std::size_t kBodyLimit = 64 << 10;

/// An IPv6 address stands in brackets.
std::string place_of(const ProbeRequest& request) {
  const bool ipv6 = request.host.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", request.host, request.port)
              : fmt::format("{}:{}", request.host, request.port);
}

std::string trouble_of(const ProbeRequest& request, const error_code& error) {
  if (error == beast::error::timeout)
    return fmt::format("{} did not answer within {}", place_of(request), format_duration(request.timeout));
  if (error == asio::error::connection_refused) return fmt::format("nobody listens on {}", place_of(request));
  if (error == http::error::end_of_stream || error == asio::error::eof ||
      error == asio::error::connection_reset)
    return fmt::format("{} closed the connection without an answer", place_of(request));
  return fmt::format("{} gave no answer: {}", place_of(request), error.message());
}

http::request<http::empty_body> request_of(const ProbeRequest& wanted) {
  const auto path = wanted.path.starts_with('/') ? wanted.path : "/" + wanted.path;
  http::request<http::empty_body> request(http::verb::get, path, 11);
  request.set(http::field::host, place_of(wanted));
  request.set(http::field::user_agent, "drover-check");
  request.set(http::field::accept, "*/*");
  request.set(http::field::connection, "close");
  return request;
}

template <typename Stream>
asio::awaitable<ProbeAnswer> ask(Stream& stream, const ProbeRequest& wanted) {
  ProbeAnswer answer;
  const auto request = request_of(wanted);
  if (const auto [error, sent] = co_await http::async_write(stream, request, kAsTuple); error) {
    answer.trouble = trouble_of(wanted, error);
    co_return answer;
  }
  beast::flat_buffer buffer(kHeaderLimit + kBodyLimit);
  http::response_parser<http::string_body> parser;
  parser.header_limit(kHeaderLimit);
  parser.body_limit(boost::none);
  if (const auto [error, read] = co_await http::async_read_header(stream, buffer, parser, kAsTuple); error) {
    answer.trouble = trouble_of(wanted, error);
    co_return answer;
  }
  // A body that is too long, or breaks off, is shown as far as it came.
  while (wanted.wants_body && !parser.is_done() && parser.get().body().size() < kBodyLimit)
    if (const auto [error, read] = co_await http::async_read_some(stream, buffer, parser, kAsTuple); error)
      break;
  const auto& message = parser.get();
  answer.response =
      CheckResponse{static_cast<int>(message.result_int()), std::string(message[http::field::content_type]),
                    message.body().substr(0, kBodyLimit)};
  co_return answer;
}

asio::ssl::context& unverified() {
  static asio::ssl::context context = [] {
    asio::ssl::context made(asio::ssl::context::tls_client);
    made.set_verify_mode(asio::ssl::verify_none);
    return made;
  }();
  return context;
}

asio::awaitable<ProbeAnswer> ask_securely(beast::tcp_stream stream, const ProbeRequest& wanted) {
  beast::ssl_stream<beast::tcp_stream> secure(std::move(stream), unverified());
  if (const auto [error] = co_await secure.async_handshake(asio::ssl::stream_base::client, kAsTuple); error)
    co_return ProbeAnswer{.trouble = trouble_of(wanted, error)};
  co_return co_await ask(secure, wanted);
}

}  // namespace

std::string status_text(int status) {
  const auto reason = http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)));
  return reason.empty() ? std::to_string(status) : fmt::format("{} ({})", status, std::string(reason));
}

asio::awaitable<ProbeAnswer> probe(ProbeRequest request) {
  error_code mistake;
  const auto address = asio::ip::make_address(request.host, mistake);
  if (mistake) co_return ProbeAnswer{.trouble = fmt::format("'{}' is not an address", request.host)};
  beast::tcp_stream stream(co_await asio::this_coro::executor);
  stream.expires_after(request.timeout);
  const tcp::endpoint place(address, static_cast<std::uint16_t>(request.port));
  if (const auto [error] = co_await stream.async_connect(place, kAsTuple); error)
    co_return ProbeAnswer{.trouble = trouble_of(request, error)};
  if (request.kind == workload::CheckKind::kTcp) co_return ProbeAnswer{};
  if (request.kind == workload::CheckKind::kHttps)
    co_return co_await ask_securely(std::move(stream), request);
  co_return co_await ask(stream, request);
}

}  // namespace drover::engine

#include "engine/checks/probe.h"

#include <fmt/format.h>

#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/status.hpp>

#include "base/units.h"
#include "http/client.h"
#include "http/listen.h"

namespace drover::engine {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;

constexpr std::size_t kBodyLimit = 64 << 10;

std::string place_of(const ProbeRequest& request) {
  return http::to_string({request.host, static_cast<std::uint16_t>(request.port)});
}

std::string trouble_of(const ProbeRequest& request, const http::error_code& error) {
  if (http::is_late(error))
    return fmt::format("{} did not answer within {}", place_of(request), format_duration(request.timeout));
  if (error == asio::error::connection_refused) return fmt::format("nobody listens on {}", place_of(request));
  if (error == beast::http::error::end_of_stream || error == asio::error::eof ||
      error == asio::error::connection_reset)
    return fmt::format("{} closed the connection without an answer", place_of(request));
  return fmt::format("{} gave no answer: {}", place_of(request), error.message());
}

http::Request request_of(const ProbeRequest& wanted) {
  return {.target = wanted.path.starts_with('/') ? wanted.path : "/" + wanted.path,
          .host = place_of(wanted),
          .headers = {{"Accept", "*/*"}, {"User-Agent", "drover-check"}}};
}

}  // namespace

std::string status_text(int status) {
  const auto reason = beast::http::obsolete_reason(beast::http::int_to_status(static_cast<unsigned>(status)));
  return reason.empty() ? std::to_string(status) : fmt::format("{} ({})", status, std::string(reason));
}

asio::awaitable<ProbeAnswer> probe(ProbeRequest request) {
  http::error_code error;
  asio::ip::make_address(request.host, error);
  if (error) co_return ProbeAnswer{.trouble = fmt::format("'{}' is not an address", request.host)};
  const bool secure = request.kind == workload::CheckKind::kHttps;
  http::Connection connection(co_await asio::this_coro::executor);
  error = co_await connection.open({.host = request.host,
                                    .port = static_cast<std::uint16_t>(request.port),
                                    .tls = secure ? http::Tls::kAnybody : http::Tls::kNone},
                                   request.timeout);
  if (!error && request.kind == workload::CheckKind::kTcp) co_return ProbeAnswer{};
  if (!error) error = co_await connection.ask(request_of(request));
  if (error) co_return ProbeAnswer{.trouble = trouble_of(request, error)};
  auto& answer = connection.answer();
  CheckResponse response{answer.status(), answer.header("Content-Type"), ""};
  // A body that is too long, or breaks off, is shown as far as it came.
  if (request.wants_body)
    (void)co_await connection.read_body([&](std::string_view piece) {
      response.body += piece.substr(0, kBodyLimit - response.body.size());
      return response.body.size() < kBodyLimit;
    });
  co_return ProbeAnswer{.response = std::move(response)};
}

}  // namespace drover::engine

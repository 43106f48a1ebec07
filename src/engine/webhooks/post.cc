#include "engine/webhooks/post.h"

#include <fmt/format.h>

#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <functional>

#include "base/base64.h"
#include "base/units.h"
#include "engine/webhooks/webhooks.h"
#include "http/client.h"

namespace drover::engine {
namespace {

namespace asio = boost::asio;
using workload::Webhook;

PostAnswer trouble(std::string why, bool again = true) {
  return {false, again, std::move(why)};
}

bool is_forbidden(const asio::ip::address& address) {
  if (address.is_v6()) {
    const auto v6 = address.to_v6();
    if (v6.is_v4_mapped()) return is_forbidden(asio::ip::make_address_v4(asio::ip::v4_mapped, v6));
    // Where one of the clouds has its metadata in IPv6.
    static const auto metadata = asio::ip::make_address_v6("fd00:ec2::254");
    return v6.is_link_local() || v6.is_multicast() || v6.is_unspecified() || v6 == metadata;
  }
  const auto v4 = address.to_v4();
  return (v4.to_uint() >> 16) == 0xa9fe || v4.is_multicast() || v4.is_unspecified();
}

http::Request request_of(const Webhook& to, std::string body) {
  const bool ipv6 = to.host.find(':') != std::string::npos;
  const bool usual = to.port == (to.secure ? 443 : 80);
  http::Request request{.method = "POST", .target = to.target, .body = std::move(body)};
  request.host = (ipv6 ? "[" + to.host + "]" : to.host) + (usual ? "" : ":" + std::to_string(to.port));
  if (!to.credentials.empty()) request.headers["Authorization"] = "Basic " + encode_base64(to.credentials);
  return request;
}

PostAnswer judge(int status) {
  if (status >= 200 && status < 300) return {.taken = true};
  const bool again = status >= 500 || status == 429 || status == 408;
  return trouble(fmt::format("it answered {}", status), again);
}

}  // namespace

bool is_forbidden_address(const std::string& address) {
  boost::system::error_code mistake;
  const auto parsed = asio::ip::make_address(address, mistake);
  return mistake || is_forbidden(parsed);
}

asio::awaitable<PostAnswer> post_json(Webhook to, std::string body, std::chrono::milliseconds timeout) {
  http::Connection connection(co_await asio::this_coro::executor);
  // What is checked is what is connected to: a name cannot mean another address a moment later.
  auto error = co_await connection.open({.host = to.host,
                                         .port = static_cast<std::uint16_t>(to.port),
                                         .tls = to.secure ? http::Tls::kTrusted : http::Tls::kNone,
                                         .may_reach = std::not_fn(is_forbidden)},
                                        timeout);
  if (error == asio::error::access_denied) co_return trouble("nobody may reach its address", false);
  if (!error) error = co_await connection.ask(request_of(to, std::move(body)));
  if (!error) co_return judge(connection.answer().status());
  co_return trouble(http::is_late(error)
                        ? fmt::format("it did not answer within {}", format_duration(timeout))
                        : error.message());
}

}  // namespace drover::engine

#include "engine/webhooks/post.h"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
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
#include <vector>

#include "base/as_tuple.h"
#include "base/base64.h"
#include "base/units.h"
#include "engine/webhooks/webhooks.h"

namespace drover::engine {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using workload::Webhook;

constexpr std::uint32_t kHeaderLimit = 32 << 10;

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

http::request<http::string_body> request_of(const Webhook& to, const std::string& body) {
  http::request<http::string_body> request(http::verb::post, to.target, 11);
  const bool ipv6 = to.host.find(':') != std::string::npos;
  const bool usual = to.port == (to.secure ? 443 : 80);
  request.set(http::field::host,
              (ipv6 ? "[" + to.host + "]" : to.host) + (usual ? "" : ":" + std::to_string(to.port)));
  request.set(http::field::user_agent, "drover");
  request.set(http::field::content_type, "application/json");
  request.set(http::field::connection, "close");
  if (!to.credentials.empty())
    request.set(http::field::authorization, "Basic " + encode_base64(to.credentials));
  request.body() = body;
  request.prepare_payload();
  return request;
}

std::string text_of(const error_code& error, std::chrono::milliseconds timeout) {
  if (error == beast::error::timeout)
    return fmt::format("it did not answer within {}", format_duration(timeout));
  return error.message();
}

PostAnswer judge(int status) {
  if (status >= 200 && status < 300) return {.taken = true};
  const bool again = status >= 500 || status == 429 || status == 408;
  return trouble(fmt::format("it answered {}", status), again);
}

template <typename Stream>
asio::awaitable<PostAnswer> ask(Stream& stream, const http::request<http::string_body>& request,
                                std::chrono::milliseconds timeout) {
  if (const auto [error, sent] = co_await http::async_write(stream, request, kAsTuple); error)
    co_return trouble(text_of(error, timeout));
  beast::flat_buffer buffer(kHeaderLimit);
  http::response_parser<http::empty_body> parser;
  parser.header_limit(kHeaderLimit);
  parser.skip(true);
  if (const auto [error, read] = co_await http::async_read_header(stream, buffer, parser, kAsTuple); error)
    co_return trouble(text_of(error, timeout));
  co_return judge(static_cast<int>(parser.get().result_int()));
}

asio::ssl::context& trusting_this_machine() {
  static asio::ssl::context context = [] {
    asio::ssl::context made(asio::ssl::context::tls_client);
    error_code ignored;  // then nobody is trusted
    made.set_default_verify_paths(ignored);
    made.set_verify_mode(asio::ssl::verify_peer);
    return made;
  }();
  return context;
}

asio::awaitable<PostAnswer> ask_securely(beast::tcp_stream stream, const Webhook& to, const std::string& body,
                                         std::chrono::milliseconds timeout) {
  beast::ssl_stream<beast::tcp_stream> secure(std::move(stream), trusting_this_machine());
  secure.set_verify_callback(asio::ssl::host_name_verification(to.host));
  SSL_set_tlsext_host_name(secure.native_handle(), to.host.c_str());
  if (const auto [error] = co_await secure.async_handshake(asio::ssl::stream_base::client, kAsTuple); error)
    co_return trouble(text_of(error, timeout));
  const auto request = request_of(to, body);
  co_return co_await ask(secure, request, timeout);
}

asio::awaitable<PostAnswer> exchange(const Webhook& to, const std::string& body,
                                     std::chrono::milliseconds timeout) {
  const auto executor = co_await asio::this_coro::executor;
  tcp::resolver resolver(executor);
  const auto [unknown, found] = co_await resolver.async_resolve(to.host, std::to_string(to.port), kAsTuple);
  if (unknown) co_return trouble(unknown.message());
  // What is checked is what is connected to: a name cannot mean another address a moment later.
  std::vector<tcp::endpoint> places;
  for (const auto& entry : found)
    if (!is_forbidden(entry.endpoint().address())) places.push_back(entry.endpoint());
  if (places.empty()) co_return trouble("nobody may reach its address", false);
  beast::tcp_stream stream(executor);
  stream.expires_after(timeout);
  if (const auto [error, place] = co_await stream.async_connect(places, kAsTuple); error)
    co_return trouble(text_of(error, timeout));
  if (to.secure) co_return co_await ask_securely(std::move(stream), to, body, timeout);
  const auto request = request_of(to, body);
  co_return co_await ask(stream, request, timeout);
}

}  // namespace

bool is_forbidden_address(const std::string& address) {
  error_code mistake;
  const auto parsed = asio::ip::make_address(address, mistake);
  return mistake || is_forbidden(parsed);
}

asio::awaitable<PostAnswer> post_json(Webhook to, std::string body, std::chrono::milliseconds timeout) {
  try {
    co_return co_await exchange(to, body, timeout);
  } catch (const std::exception& error) {
    co_return trouble(error.what());
  }
}

}  // namespace drover::engine

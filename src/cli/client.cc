#include "cli/client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/url/encode.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <boost/url/url_view.hpp>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/json_items.h"
#include "base/json_text.h"

namespace drover::cli {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using nlohmann::json;
using Stream = beast::basic_stream<asio::generic::stream_protocol>;

struct Client::Call {
  http::verb method = http::verb::get;
  std::string target;
  std::string body;
  std::string last_event_id;
};

namespace {

constexpr std::chrono::seconds kSilence{60};  ///< the daemon's own limits are shorter
constexpr std::size_t kMaxAnswer = 256ULL << 20;

struct Address {
  std::string host;
  std::string port;
  std::string authority;  ///< for the Host header
};

Result<Address> parse_url(const std::string& text) {
  const auto url = boost::urls::parse_uri(text);
  if (!url || url->scheme() != "http" || url->host().empty())
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not the address of a daemon", text),
                "write it as http://HOST:PORT");
  Address address{url->host_address(), url->has_port() ? std::string(url->port()) : "80", ""};
  address.authority = std::string(url->encoded_host_and_port());
  return address;
}

Stream connect(asio::io_context& context, const Endpoint& endpoint, const Address& address) {
  if (endpoint.url.empty()) {
    asio::local::stream_protocol::socket socket(context);
    socket.connect(asio::local::stream_protocol::endpoint(endpoint.socket));
    return Stream(std::move(socket));
  }
  asio::ip::tcp::resolver resolver(context);
  asio::ip::tcp::socket socket(context);
  asio::connect(socket, resolver.resolve(address.host, address.port));
  socket.set_option(asio::ip::tcp::no_delay(true));
  return Stream(std::move(socket));
}

/// Reads what is left of the message, piece by piece.
asio::awaitable<void> read_body(Stream& stream, beast::flat_buffer& buffer,
                                http::response_parser<http::buffer_body>& parser, const Sink& sink) {
  std::array<char, 65536> piece;
  while (!parser.is_done()) {
    parser.get().body().data = piece.data();
    parser.get().body().size = piece.size();
    stream.expires_after(kSilence);
    boost::system::error_code error;
    co_await http::async_read_some(stream, buffer, parser, asio::redirect_error(asio::use_awaitable, error));
    if (error && error != http::error::need_buffer) throw boost::system::system_error(error);
    const auto filled = piece.size() - parser.get().body().size;
    if (filled > 0 && !sink({piece.data(), filled})) co_return;
  }
}

asio::awaitable<std::optional<Error>> converse(Stream& stream,
                                               const http::request<http::string_body>& request,
                                               const Sink& sink) {
  stream.expires_after(kSilence);
  co_await http::async_write(stream, request, asio::use_awaitable);
  beast::flat_buffer buffer;
  http::response_parser<http::buffer_body> parser;
  parser.body_limit(boost::none);
  stream.expires_after(kSilence);
  co_await http::async_read_header(stream, buffer, parser, asio::use_awaitable);
  const auto status = parser.get().result_int();
  if (status < 400) {
    co_await read_body(stream, buffer, parser, sink);
    co_return std::nullopt;
  }
  std::string refusal;
  const Sink collect = [&](std::string_view piece) {
    refusal += piece;
    return refusal.size() < kMaxAnswer;
  };
  co_await read_body(stream, buffer, parser, collect);
  co_return read_refusal(status, refusal);
}

}  // namespace

namespace {

ErrorKind kind_of_status(unsigned status) {
  switch (status) {
    case 400:
    case 422:
      return ErrorKind::kInvalid;
    case 401:
      return ErrorKind::kUnauthenticated;
    case 403:
      return ErrorKind::kPermissionDenied;
    case 404:
      return ErrorKind::kNotFound;
    case 409:
      return ErrorKind::kConflict;
    case 503:
      return ErrorKind::kUnavailable;
    default:
      return ErrorKind::kInternal;
  }
}

/// Marathon's details: a text, or a list of paths with their errors.
std::string details_of(const json& details) {
  if (details.is_string()) return ": " + details.get<std::string>();
  std::string text;
  if (!details.is_array()) return text;
  for (const auto& detail : details) {
    if (!detail.is_object()) continue;
    for (const auto& error : detail.value("errors", json::array()))
      if (error.is_string())
        text += fmt::format("\n  {}: {}", detail.value("path", ""), error.get_ref<const std::string&>());
  }
  return text;
}

}  // namespace

Error read_refusal(unsigned status, const std::string& body) {
  const auto value = json::parse(body, nullptr, false);
  const auto error = value.is_object() ? value.value("error", json()) : json();
  if (error.is_object())
    return {error_kind_from_name(error.value("kind", "")), error.value("message", ""),
            error.value("hint", ""), error.value("path", "")};
  const auto message = value.is_object() ? value.value("message", json()) : json();
  if (!message.is_string())
    return {ErrorKind::kInternal, fmt::format("The daemon answered with status {} and no reason", status), "",
            ""};
  auto words = message.get<std::string>();
  // Chronos answers 400 for what is not there, and begins with the name of its exception.
  constexpr std::string_view kRequirement = "requirement failed: ";
  if (const auto at = words.find(kRequirement); at != std::string::npos)
    words = words.substr(at + kRequirement.size());
  std::string hint;
  if (const auto at = words.find(". Override with"); status == 409 && at != std::string::npos) {
    words = words.substr(0, at);
    for (const auto& deployment : value.value("deployments", json::array()))
      if (deployment.is_object()) words += " " + deployment.value("id", "");
    hint = "wait until it has ended, or put this change in its place with --force";
  }
  const bool missing = status == 400 && words.ends_with(" not found");
  return {missing ? ErrorKind::kNotFound : kind_of_status(status),
          words + details_of(value.value("details", json())), hint, ""};
}

Client::Client(Endpoint endpoint) : endpoint_(std::move(endpoint)) {}

Result<Upgraded> Client::upgrade(const std::string& target, const json& body,
                                 const std::string& protocol) const {
  const bool tcp = !endpoint_.url.empty();
  DROVER_TRY(const auto address, tcp ? parse_url(endpoint_.url) : Result<Address>(Address{"", "", "drover"}));
  http::request<http::string_body> request(http::verb::post, target, 11);
  request.set(http::field::host, address.authority);
  if (tcp && !endpoint_.token.empty()) request.set(http::field::authorization, "Bearer " + endpoint_.token);
  request.set(http::field::content_type, "application/json");
  request.set(http::field::connection, "Upgrade");
  request.set(http::field::upgrade, protocol);
  request.body() = to_text(body);
  request.prepare_payload();
  try {
    asio::io_context context(1);
    auto stream = connect(context, endpoint_, address);
    http::write(stream, request);
    beast::flat_buffer buffer;
    http::response_parser<http::string_body> parser;
    http::read_header(stream, buffer, parser);
    if (parser.get().result() != http::status::switching_protocols) {
      http::read(stream, buffer, parser);
      return Failure(read_refusal(parser.get().result_int(), parser.get().body()));
    }
    Upgraded upgraded;
    const auto rest = buffer.cdata();
    upgraded.rest.assign(static_cast<const char*>(rest.data()), rest.size());
    upgraded.socket.reset(::dup(stream.socket().native_handle()));
    ::fcntl(upgraded.socket.get(), F_SETFL, ::fcntl(upgraded.socket.get(), F_GETFL) & ~O_NONBLOCK);
    return upgraded;
  } catch (const boost::system::system_error& error) {
    return fail(ErrorKind::kUnavailable,
                fmt::format("Failed to speak with the daemon at '{}': {}",
                            tcp ? endpoint_.url : endpoint_.socket, error.code().message()),
                "'sudo drover serve' starts it");
  }
}

Status Client::perform(const Call& call, const Sink& sink) const {
  const bool tcp = !endpoint_.url.empty();
  const auto& where = tcp ? endpoint_.url : endpoint_.socket;
  DROVER_TRY(const auto address, tcp ? parse_url(endpoint_.url) : Result<Address>(Address{"", "", "drover"}));
  http::request<http::string_body> request(call.method, call.target, 11);
  request.set(http::field::host, address.authority);
  if (tcp && !endpoint_.token.empty()) request.set(http::field::authorization, "Bearer " + endpoint_.token);
  if (!call.body.empty()) request.set(http::field::content_type, "application/json");
  if (!call.last_event_id.empty()) request.set("Last-Event-ID", call.last_event_id);
  request.keep_alive(false);
  request.body() = call.body;
  request.prepare_payload();

  const auto what = [&](std::string_view doing) {
    return fmt::format("{} the daemon at '{}'", doing, where);
  };
  bool connected = false;
  try {
    asio::io_context context(1);
    auto stream = connect(context, endpoint_, address);
    connected = true;
    std::optional<Error> refusal;
    std::exception_ptr broken;
    asio::co_spawn(context, converse(stream, request, sink),
                   [&](std::exception_ptr exception, std::optional<Error> error) {
                     broken = exception;
                     refusal = std::move(error);
                   });
    context.run();
    if (broken) std::rethrow_exception(broken);
    if (refusal) return Failure(std::move(*refusal));
    return {};
  } catch (const boost::system::system_error& error) {
    if (connected)
      return fail(ErrorKind::kUnavailable, what("Lost the connection to") + ": " + error.code().message());
    return fail(ErrorKind::kUnavailable, what("Failed to reach") + ": " + error.code().message(),
                tcp ? "check the address, and that the daemon was started with --listen"
                    : "start it with 'sudo drover serve', or name its socket with --socket");
  }
}

Result<std::string> Client::fetch(const Call& call) const {
  std::string answer;
  DROVER_CHECK_OK(perform(call, [&](std::string_view piece) {
    answer += piece;
    return answer.size() < kMaxAnswer;
  }));
  return answer;
}

Result<json> Client::get(const std::string& target) const {
  DROVER_TRY(const auto answer, fetch({http::verb::get, target, "", ""}));
  return parse_json(answer, "The daemon's answer");
}

Result<json> Client::get_items(const std::string& target, std::string_view name,
                               const std::function<void(const json&)>& visit) const {
  DROVER_TRY(const auto answer, fetch({http::verb::get, target, "", ""}));
  DROVER_TRY(auto rest, parse_json_items(answer, "The daemon's answer", name, visit));
  if (const auto list = rest.find(name); list == rest.end() || !list->is_array())
    return fail(ErrorKind::kInternal,
                fmt::format("The daemon's answer to '{}' has no list '{}'", target, name),
                "is the daemon of another version? 'drover version' says");
  return rest;
}

Result<json> Client::post(const std::string& target, const json& body) const {
  return send({http::verb::post, target, "", ""}, body);
}

Result<json> Client::patch(const std::string& target, const json& body) const {
  return send({http::verb::patch, target, "", ""}, body);
}

Result<json> Client::put(const std::string& target, const json& body) const {
  return send({http::verb::put, target, "", ""}, body);
}

Result<json> Client::erase(const std::string& target) const {
  return send({http::verb::delete_, target, "", ""}, json());
}

Result<json> Client::send(Call call, const json& body) const {
  try {
    if (!body.is_null()) call.body = body.dump();
  } catch (const json::exception&) {
    return fail(ErrorKind::kInvalid, "An argument or a variable is not UTF-8 text",
                "put such bytes into a file that the task reads");
  }
  DROVER_TRY(const auto answer, fetch(call));
  if (answer.empty()) return json();
  return parse_json(answer, "The daemon's answer");
}

Status Client::remove(const std::string& target) const {
  return fetch({http::verb::delete_, target, "", ""}).map([](const std::string&) {});
}

Status Client::stream(const std::string& target, const std::string& last_event_id, const Sink& sink) const {
  return perform({http::verb::get, target, "", last_event_id}, sink);
}

Status Client::stream_post(const std::string& target, const json& body, const Sink& sink) const {
  return perform({http::verb::post, target, to_text(body), ""}, sink);
}

std::string percent_encode(std::string_view text) {
  return boost::urls::encode(boost::core::string_view(text.data(), text.size()),
                             boost::urls::unreserved_chars);
}

}  // namespace drover::cli

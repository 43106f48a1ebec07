#include "cli/client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/url/encode.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <boost/url/url_view.hpp>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/decode.h"
#include "base/json_items.h"
#include "base/json_text.h"
#include "base/units.h"
#include "cli/tls_tunnel.h"

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

constexpr std::chrono::seconds kSilence{60};     ///< within an answer; the daemon's own limits are shorter
constexpr int kProbe = 2;                        ///< half of the patience is over: is it alive?
constexpr std::chrono::milliseconds kGrace{50};  ///< to hear an answer that came during the question
constexpr std::size_t kMaxAnswer = 256ULL << 20;

struct Address {
  bool secure = false;
  std::string host;
  std::string port;
  std::string authority;  ///< for the Host header
};

Result<Address> parse_url(const std::string& text) {
  const auto url = boost::urls::parse_uri(text);
  const bool secure = url && url->scheme() == "https";
  if (!url || (!secure && url->scheme() != "http") || url->host().empty())
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not the address of a daemon", text),
                "write it as http://HOST:PORT or https://HOST:PORT");
  Address address{secure, url->host_address(),
                  url->has_port() ? std::string(url->port()) : (secure ? "443" : "80"), ""};
  address.authority = std::string(url->encoded_host_and_port());
  return address;
}

/// An asynchronous one would not wait for a place in a queue that is full, and a plain one without end.
void connect_within(asio::generic::stream_protocol::socket& socket,
                    const asio::generic::stream_protocol::endpoint& place,
                    std::chrono::milliseconds patience) {
  const auto set_limit = [&](std::chrono::milliseconds limit) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(limit);
    const timeval time{seconds.count(), std::chrono::microseconds(limit - seconds).count()};
    ::setsockopt(socket.native_handle(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  };
  set_limit(patience);
  if (::connect(socket.native_handle(), place.data(), static_cast<socklen_t>(place.size())) != 0) {
    const bool late = errno == EAGAIN || errno == EINPROGRESS;
    throw boost::system::system_error(late ? ETIMEDOUT : errno, boost::system::system_category());
  }
  set_limit({});
}

Stream connect(asio::io_context& context, const Endpoint& endpoint, const Address& address) {
  using Protocol = asio::generic::stream_protocol;
  std::vector<Protocol::endpoint> places;
  if (endpoint.url.empty()) {
    places.emplace_back(asio::local::stream_protocol::endpoint(endpoint.socket));
  } else {
    asio::ip::tcp::resolver resolver(context);
    for (const auto& found : resolver.resolve(address.host, address.port))
      places.emplace_back(found.endpoint());
  }
  for (auto place = places.begin();; ++place) {
    try {
      Protocol::socket socket(context, place->protocol());
      connect_within(socket, *place, endpoint.patience);
      if (!endpoint.url.empty()) socket.set_option(asio::ip::tcp::no_delay(true));
      return Stream(std::move(socket));
    } catch (const boost::system::system_error&) {
      if (place + 1 == places.end()) throw;
    }
  }
}

/// One that leaves this machine encrypted comes out of a tunnel.
struct Connection {
  std::unique_ptr<TlsTunnel> tunnel;
  Stream stream;
};

/// Throws system_error when there is nobody.
Result<Connection> open_connection(asio::io_context& context, const Endpoint& endpoint,
                                   const Address& address) {
  auto stream = connect(context, endpoint, address);
  if (!address.secure) return Connection{nullptr, std::move(stream)};
  UniqueFd socket(stream.socket().release());
  DROVER_TRY(auto tunnel,
             TlsTunnel::open(std::move(socket), address.host, endpoint.ca_file, endpoint.patience));
  asio::generic::stream_protocol::socket plain(context, {AF_UNIX, 0}, tunnel->take_plain_end().release());
  return Connection{std::move(tunnel), Stream(std::move(plain))};
}

http::request<http::string_body> request_of(http::verb method, const std::string& target,
                                            const Endpoint& endpoint, const Address& address) {
  http::request<http::string_body> request(method, target, 11);
  request.set(http::field::host, address.authority);
  if (!endpoint.url.empty() && !endpoint.token.empty())
    request.set(http::field::authorization, "Bearer " + endpoint.token);
  return request;
}

/// Whether the daemon answers anybody, whatever it says.
bool is_alive(Endpoint endpoint, const Address& address) {
  endpoint.patience /= kProbe;
  try {
    asio::io_context context(1);
    auto connection = open_connection(context, endpoint, address);
    if (!connection) return false;
    auto& stream = connection->stream;
    bool answered = false;
    const auto ask = [&]() -> asio::awaitable<void> {
      const auto request = request_of(http::verb::get, "/health", endpoint, address);
      stream.expires_after(endpoint.patience);
      co_await http::async_write(stream, request, asio::use_awaitable);
      beast::flat_buffer buffer;
      http::response_parser<http::empty_body> parser;
      co_await http::async_read_header(stream, buffer, parser, asio::use_awaitable);
      answered = true;
    };
    asio::co_spawn(context, ask, [](const std::exception_ptr&) {});
    context.run();
    return answered;
  } catch (const boost::system::system_error&) {
    return false;
  }
}

/// A talk with the daemon, which sets `begun` when the head of its answer is there. Until then it goes on as
/// long as the daemon is alive.
struct Talk {
  const Endpoint& endpoint;
  const Address& address;
  asio::io_context context{1};
  asio::steady_timer timer{context};
  std::optional<Connection> connection{};
  bool begun = false;
  bool over = false;

  void watch() {
    if (endpoint.patience.count() == 0) return;
    timer.expires_after(endpoint.patience / kProbe);
    timer.async_wait([this](const auto& error) {
      if (error || begun) return;
      if (is_alive(endpoint, address)) return watch();
      timer.expires_after(kGrace);
      timer.async_wait([this](const auto& later) {
        if (later || begun) return;
        over = true;
        connection->stream.close();
      });
    });
  }

  /// Throws system_error: timed_out when the daemon does not answer.
  void run(asio::awaitable<void> conversation) {
    std::exception_ptr broken;
    asio::co_spawn(context, std::move(conversation), [&](std::exception_ptr exception) {
      if (!over) broken = std::move(exception);
      begun = true;
      timer.cancel();
    });
    watch();
    context.run();
    if (over) throw boost::system::system_error(asio::error::timed_out);
    if (broken) std::rethrow_exception(broken);
  }
};

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

asio::awaitable<void> converse(Talk& talk, const http::request<http::string_body>& request, const Sink& sink,
                               std::optional<Error>& refused) {
  auto& stream = talk.connection->stream;
  co_await http::async_write(stream, request, asio::use_awaitable);
  beast::flat_buffer buffer;
  http::response_parser<http::buffer_body> parser;
  parser.body_limit(boost::none);
  co_await http::async_read_header(stream, buffer, parser, asio::use_awaitable);
  talk.begun = true;
  const auto status = parser.get().result_int();
  if (status < 300) {
    co_await read_body(stream, buffer, parser, sink);
    co_return;
  }
  if (status < 400) {
    refused = Error{ErrorKind::kUnavailable,
                    fmt::format("The answer is to ask another server (status {}), which is not done", status),
                    "give the address of that server, if you trust it, with --host", ""};
    co_return;
  }
  std::string refusal;
  const Sink collect = [&](std::string_view piece) {
    refusal += piece;
    return refusal.size() < kMaxAnswer;
  };
  co_await read_body(stream, buffer, parser, collect);
  refused = read_refusal(status, refusal);
}

/// For a protocol that is not HTTP; what has come of it already is in `rest`.
asio::awaitable<void> leave_http(Talk& talk, const http::request<http::string_body>& request,
                                 std::string& rest, std::optional<Error>& refused) {
  auto& stream = talk.connection->stream;
  co_await http::async_write(stream, request, asio::use_awaitable);
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  co_await http::async_read_header(stream, buffer, parser, asio::use_awaitable);
  talk.begun = true;
  if (parser.get().result() == http::status::switching_protocols) {
    rest = beast::buffers_to_string(buffer.cdata());
    co_return;
  }
  stream.expires_after(kSilence);
  co_await http::async_read(stream, buffer, parser, asio::use_awaitable);
  refused = read_refusal(parser.get().result_int(), parser.get().body());
}

/// What is said when there is no answer, or not all of it.
Failure no_answer(const Talk& talk, const boost::system::error_code& code) {
  const bool tcp = !talk.endpoint.url.empty();
  const auto daemon = fmt::format("the daemon at '{}'", tcp ? talk.endpoint.url : talk.endpoint.socket);
  if (code == asio::error::timed_out)
    return fail(ErrorKind::kUnavailable,
                fmt::format("No answer came from {} in {}", daemon, format_duration(talk.endpoint.patience)),
                "is it stopped, or the machine overloaded? --patience TIME waits longer");
  if (talk.connection)
    return fail(ErrorKind::kUnavailable,
                fmt::format("Lost the connection to {}: {}", daemon, code.message()));
  return fail(ErrorKind::kUnavailable, fmt::format("Failed to reach {}: {}", daemon, code.message()),
              tcp ? "check the address, and that the daemon was started with --listen"
                  : "start it with 'sudo drover serve', or name its socket with --socket");
}

Result<Address> address_of(const Endpoint& endpoint) {
  return endpoint.url.empty() ? Result<Address>(Address{false, "", "", "drover"}) : parse_url(endpoint.url);
}

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
  DROVER_TRY(const auto address, address_of(endpoint_));
  auto request = request_of(http::verb::post, target, endpoint_, address);
  request.set(http::field::content_type, "application/json");
  request.set(http::field::connection, "Upgrade");
  request.set(http::field::upgrade, protocol);
  request.body() = to_text(body);
  request.prepare_payload();
  Talk talk{endpoint_, address};
  try {
    Upgraded upgraded;
    std::optional<Error> refused;
    DROVER_TRY(auto connection, open_connection(talk.context, endpoint_, address));
    talk.connection.emplace(std::move(connection));
    talk.run(leave_http(talk, request, upgraded.rest, refused));
    if (refused) return Failure(std::move(*refused));
    upgraded.tunnel = std::move(talk.connection->tunnel);
    upgraded.socket.reset(::dup(talk.connection->stream.socket().native_handle()));
    ::fcntl(upgraded.socket.get(), F_SETFL, ::fcntl(upgraded.socket.get(), F_GETFL) & ~O_NONBLOCK);
    return upgraded;
  } catch (const boost::system::system_error& error) {
    return no_answer(talk, error.code());
  }
}

Status Client::perform(const Call& call, const Sink& sink) const {
  DROVER_TRY(const auto address, address_of(endpoint_));
  auto request = request_of(call.method, call.target, endpoint_, address);
  if (!call.body.empty()) request.set(http::field::content_type, "application/json");
  if (!call.last_event_id.empty()) request.set("Last-Event-ID", call.last_event_id);
  request.keep_alive(false);
  request.body() = call.body;
  request.prepare_payload();
  Talk talk{endpoint_, address};
  try {
    std::optional<Error> refused;
    DROVER_TRY(auto connection, open_connection(talk.context, endpoint_, address));
    talk.connection.emplace(std::move(connection));
    talk.run(converse(talk, request, sink, refused));
    if (refused) return Failure(std::move(*refused));
    return {};
  } catch (const boost::system::system_error& error) {
    return no_answer(talk, error.code());
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

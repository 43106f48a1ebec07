#include "cli/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/url/encode.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <boost/url/url_view.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/decode.h"
#include "base/json_items.h"
#include "base/json_text.h"
#include "base/units.h"
#include "cli/tls_tunnel.h"
#include "http/client.h"

namespace drover::cli {

namespace asio = boost::asio;
using nlohmann::json;

struct Client::Call {
  std::string method = "GET";
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
  http::Server server;
  bool secure = false;
  std::string authority = "drover";  ///< for the Host header
  std::string path = {};             ///< before each target
};

Result<Address> address_of(const Endpoint& endpoint) {
  if (endpoint.trouble) return Failure(*endpoint.trouble);
  if (endpoint.url.empty()) return Address{.server = {.socket = endpoint.socket}};
  const auto no_part = [](unsigned char c) { return c <= ' ' || c > '~'; };
  if (std::ranges::any_of(endpoint.token, no_part))
    return fail(ErrorKind::kInvalid,
                "The secret (DROVER_TOKEN or --token) has a line break, a space or the like in it",
                "give the secret alone: in the daemon's credentials file it stands behind the user's name");
  const auto url = boost::urls::parse_uri(endpoint.url);
  const bool secure = url && url->scheme() == "https";
  if (!url || (!secure && url->scheme() != "http") || url->host().empty() ||
      (url->has_port() && url->port_number() == 0))
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not the address of a daemon", endpoint.url),
                "write it as http://HOST:PORT or https://HOST:PORT");
  const std::uint16_t usual_port = secure ? 443 : 80;
  Address address{
      .server = {.host = url->host_address(), .port = url->has_port() ? url->port_number() : usual_port},
      .secure = secure,
      .authority = std::string(url->encoded_host_and_port())};
  if (endpoint.gateway) {
    address.path = std::string(url->encoded_path());
    while (address.path.ends_with('/')) address.path.pop_back();
    address.path += endpoint.gateway->path;
  }
  return address;
}

TlsTrust trust_of(const Endpoint& endpoint) {
  const auto& gateway = endpoint.gateway;
  if (!gateway) return {endpoint.ca_file, "", "", ""};
  return {"", gateway->authorities, gateway->certificate, gateway->key};
}

http::TimeLimit limit_of(std::chrono::milliseconds patience) {
  return patience.count() == 0 ? http::TimeLimit() : patience;
}

/// A talk with the daemon, which sets `begun` when the head of its answer is there. Until then it goes on as
/// long as the daemon is alive.
struct Talk {
  const Endpoint& endpoint;
  const Address& address;
  asio::io_context context{1};
  asio::steady_timer timer{context};
  std::unique_ptr<TlsTunnel> tunnel{};  ///< what leaves this machine encrypted comes out of it
  std::optional<http::Connection> connection{};
  bool connected = false;
  bool begun = false;
  bool over = false;

  Status open();
  /// Waits for what is said, and no longer than for a daemon that is dead.
  Status run(asio::awaitable<Status> conversation);

 private:
  void watch();
};

/// What is said when there is no answer, or not all of it.
Failure no_answer(const Talk& talk, const http::error_code& code) {
  const bool tcp = !talk.endpoint.url.empty();
  const auto daemon = fmt::format("the daemon at '{}'", tcp ? talk.endpoint.url : talk.endpoint.socket);
  if (!talk.begun && http::is_late(code))
    return fail(ErrorKind::kUnavailable,
                fmt::format("No answer came from {} in {}", daemon, format_duration(talk.endpoint.patience)),
                "is it stopped, or the machine overloaded? --patience TIME waits longer");
  if (talk.connected)
    return fail(ErrorKind::kUnavailable,
                fmt::format("Lost the connection to {}: {}", daemon, code.message()));
  return fail(ErrorKind::kUnavailable, fmt::format("Failed to reach {}: {}", daemon, code.message()),
              tcp ? "check the address, and that the daemon was started with --listen"
                  : "start it with 'sudo drover serve', or name its socket with --socket");
}

Status Talk::open() {
  connection.emplace(context.get_executor());
  auto opened = asio::co_spawn(context, connection->open(address.server, limit_of(endpoint.patience)),
                               asio::use_future);
  context.run();
  context.restart();
  if (const auto error = opened.get()) return no_answer(*this, error);
  if (address.secure) {
    DROVER_TRY(tunnel, TlsTunnel::open(connection->release(), address.server.host, trust_of(endpoint),
                                       endpoint.patience));
    connection.emplace(context.get_executor(), tunnel->take_plain_end());
  }
  connected = true;
  return {};
}

http::Request request_of(std::string method, const std::string& target, const Talk& talk) {
  const auto& endpoint = talk.endpoint;
  const auto& address = talk.address;
  http::Request request{
      .method = std::move(method), .target = address.path + target, .host = address.authority};
  const auto show = [&](const char* header, const std::string& token) {
    if (!token.empty()) request.headers[header] = "Bearer " + token;
  };
  if (endpoint.gateway) {
    show("Authorization", endpoint.gateway->token);
    show("Drover-Authorization", endpoint.token);
  } else if (!endpoint.url.empty()) {
    show("Authorization", endpoint.token);
  }
  return request;
}

/// An API server takes an escaped slash for one, and what goes up in a path it takes away before it hands the
/// request on: a name could make it another request.
Status check_target(const Endpoint& endpoint, const std::string& target) {
  if (!endpoint.gateway) return {};
  std::string path = target.substr(0, target.find('?')) + "/";
  boost::algorithm::ireplace_all(path, "%2F", "/");
  for (const char* up : {"/../", "/./"})
    if (path.find(up) != std::string::npos)
      return fail(ErrorKind::kInvalid, "A name with '.' or '..' alone in it does not pass the API server",
                  "write the name as 'drover ps' or 'drover app ls' shows it");
  return {};
}

/// Of the API server itself, that it does not hand the request on.
void add_hint_of_gateway(Error& error) {
  switch (error.kind) {
    case ErrorKind::kUnauthenticated:
      error.hint = "the API server does not take what the kubeconfig shows: ask with kubectl whether it does";
      break;
    case ErrorKind::kPermissionDenied:
      error.hint =
          "ask for the right to use that Service: the chart has a Role for it, which ends with '-users'";
      break;
    case ErrorKind::kNotFound:
      error.hint = "is the chart installed with controlPlane.enabled=true, and in that namespace?";
      break;
    default:
      error.hint = "look with 'kubectl get pods' whether the control plane runs";
  }
}

bool is_of_gateway(const Endpoint& endpoint, const std::string& refusal) {
  const auto said = json::parse(refusal, nullptr, false);
  return endpoint.gateway && said.is_object() && said.value("kind", json()) == "Status";
}

/// Whether the daemon answers anybody, whatever it says.
bool is_alive(Endpoint endpoint, const Address& address) {
  endpoint.patience = std::max(endpoint.patience / kProbe, std::chrono::milliseconds(1));
  Talk talk{endpoint, address};
  if (!talk.open()) return false;
  talk.connection->expire_after(limit_of(endpoint.patience));
  auto answered = asio::co_spawn(talk.context, talk.connection->ask(request_of("GET", "/health", talk)),
                                 asio::use_future);
  talk.context.run();
  return !answered.get();
}

void Talk::watch() {
  if (endpoint.patience.count() == 0) return;
  timer.expires_after(endpoint.patience / kProbe);
  timer.async_wait([this](const auto& error) {
    if (error || begun) return;
    if (is_alive(endpoint, address)) return watch();
    timer.expires_after(kGrace);
    timer.async_wait([this](const auto& later) {
      if (later || begun) return;
      over = true;
      connection->close();
    });
  });
}

Status Talk::run(asio::awaitable<Status> conversation) {
  connection->expire_after({});
  Status outcome;
  std::exception_ptr broken;
  asio::co_spawn(context, std::move(conversation), [&](std::exception_ptr exception, Status said) {
    broken = std::move(exception);
    outcome = std::move(said);
    begun = true;
    timer.cancel();
  });
  watch();
  context.run();
  if (broken) std::rethrow_exception(broken);
  return outcome;
}

/// Sends the request and waits for the head of the answer. A refusal is an error.
asio::awaitable<Status> ask(Talk& talk, http::Request request) {
  auto& connection = *talk.connection;
  const bool upgrades = !request.upgrade.empty();
  if (auto good = check_target(talk.endpoint, request.target); !good) co_return good;
  const auto failed = co_await connection.ask(std::move(request));
  if (failed) co_return no_answer(talk, talk.over ? asio::error::timed_out : failed);
  talk.begun = true;
  const auto status = connection.answer().status();
  if (upgrades ? status == 101 : status < 300) co_return Status();
  if (status >= 300 && status < 400)
    co_return fail(ErrorKind::kUnavailable,
                   fmt::format("The answer is to ask another server (status {}), which is not done", status),
                   "give the address of that server, if you trust it, with --host");
  std::string refusal;
  const auto collect = [&](std::string_view piece) {
    refusal += piece;
    return refusal.size() < kMaxAnswer;
  };
  if (const auto error = co_await connection.read_body(collect, kSilence)) co_return no_answer(talk, error);
  auto error = read_refusal(static_cast<unsigned>(status), refusal);
  if (is_of_gateway(talk.endpoint, refusal))
    add_hint_of_gateway(error);
  else if (error.kind == ErrorKind::kUnauthenticated)
    error.hint = "put your secret into DROVER_TOKEN: the daemon's credentials file has it behind your name";
  co_return Failure(std::move(error));
}

asio::awaitable<Status> converse(Talk& talk, http::Request request, const Sink& sink) {
  if (auto asked = co_await ask(talk, std::move(request)); !asked) co_return asked;
  if (const auto error = co_await talk.connection->read_body(sink, kSilence))
    co_return no_answer(talk, error);
  co_return Status();
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
    return {ErrorKind::kUnavailable,
            fmt::format("What answered is no daemon of Drover's (status {}, and no reason)", status),
            "check the address and the port of --host, and what stands between", ""};
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

Status check(const Endpoint& endpoint) {
  DROVER_CHECK_OK(address_of(endpoint));
  return {};
}

Result<Upgraded> Client::upgrade(const std::string& target, const json& body,
                                 const std::string& protocol) const {
  DROVER_TRY(const auto address, address_of(endpoint_));
  Talk talk{endpoint_, address};
  DROVER_CHECK_OK(talk.open());
  auto request = request_of("POST", target, talk);
  request.body = to_text(body);
  request.upgrade = protocol;
  DROVER_CHECK_OK(talk.run(ask(talk, std::move(request))));
  auto rest = talk.connection->answer().take();
  return Upgraded{std::move(talk.tunnel), talk.connection->release(), std::move(rest)};
}

Status Client::perform(const Call& call, const Sink& sink) const {
  DROVER_TRY(const auto address, address_of(endpoint_));
  Talk talk{endpoint_, address};
  DROVER_CHECK_OK(talk.open());
  auto request = request_of(call.method, call.target, talk);
  request.body = call.body;
  if (!call.last_event_id.empty()) request.headers["Last-Event-ID"] = call.last_event_id;
  return talk.run(converse(talk, std::move(request), sink));
}

Result<std::string> Client::fetch(const Call& call) const {
  std::string answer;
  DROVER_CHECK_OK(perform(call, [&](std::string_view piece) {
    answer += piece;
    return answer.size() < kMaxAnswer;
  }));
  return answer;
}

/// Another server may answer with a page.
Result<json> Client::read_answer(const std::string& answer) const {
  auto parsed = parse_json(answer, "The daemon's answer");
  if (parsed || endpoint_.url.empty()) return parsed;
  return fail(ErrorKind::kUnavailable,
              fmt::format("What answered at '{}' is no daemon of Drover's", endpoint_.url),
              "check the address and the port, and what stands between");
}

Result<json> Client::get(const std::string& target) const {
  DROVER_TRY(const auto answer, fetch({"GET", target, "", ""}));
  return read_answer(answer);
}

Result<json> Client::get_items(const std::string& target, std::string_view name,
                               const std::function<void(const json&)>& visit) const {
  DROVER_TRY(const auto answer, fetch({"GET", target, "", ""}));
  DROVER_TRY(auto rest, parse_json_items(answer, "The daemon's answer", name, visit));
  if (const auto list = rest.find(name); list == rest.end() || !list->is_array())
    return fail(ErrorKind::kInternal,
                fmt::format("The daemon's answer to '{}' has no list '{}'", target, name),
                "is the daemon of another version? 'drover version' says");
  return rest;
}

Result<json> Client::post(const std::string& target, const json& body) const {
  return send({"POST", target, "", ""}, body);
}

Result<json> Client::patch(const std::string& target, const json& body) const {
  return send({"PATCH", target, "", ""}, body);
}

Result<json> Client::put(const std::string& target, const json& body) const {
  return send({"PUT", target, "", ""}, body);
}

Result<json> Client::erase(const std::string& target) const {
  return send({"DELETE", target, "", ""}, json());
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
  return fetch({"DELETE", target, "", ""}).map([](const std::string&) {});
}

Status Client::stream(const std::string& target, const std::string& last_event_id, const Sink& sink) const {
  return perform({"GET", target, "", last_event_id}, sink);
}

Status Client::stream_post(const std::string& target, const json& body, const Sink& sink) const {
  return perform({"POST", target, to_text(body), ""}, sink);
}

std::string percent_encode(std::string_view text) {
  return boost::urls::encode(boost::core::string_view(text.data(), text.size()),
                             boost::urls::unreserved_chars);
}

}  // namespace drover::cli

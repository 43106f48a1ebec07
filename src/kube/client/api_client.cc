#include "kube/client/api_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/json_items.h"
#include "base/pause.h"
#include "base/text.h"
#include "kube/client/refusal.h"
#include "kube/client/url_text.h"
#include "kube/client/watch_lines.h"

namespace drover::kube {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr std::uint64_t kMostAnswer = 256 << 20;
constexpr std::size_t kMostRefusal = 64 << 10;
constexpr std::size_t kMostIdle = 64;
constexpr std::chrono::seconds kStall{20};
constexpr std::chrono::seconds kLongestText{7 * 24 * 3600};

const std::map<std::string, std::string> kMethods = {
    {"get", "GET"},    {"list", "GET"},    {"watch", "GET"},    {"create", "POST"},
    {"update", "PUT"}, {"patch", "PATCH"}, {"delete", "DELETE"}};

bool is_good(int status) {
  return status / 100 == 2;
}

std::string doing_of(const ApiRequest& request) {
  return fmt::format("Failed to {} {}", request.verb, describe(request.path));
}

std::optional<std::chrono::seconds> retry_after_of(const HttpAnswer& answer) {
  const auto text = answer.header("retry-after");
  unsigned seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds > 24 * 3600) return std::nullopt;
  return std::chrono::seconds(seconds);
}

/// What might have been done although no answer came is not done twice: an object that was made already would
/// look like somebody else's.
bool is_once(const ApiRequest& request) {
  return request.verb == "create" && !request.repeatable;
}
/// Whether to ask again.
bool is_worth_repeating(const ApiRequest& request, const Refusal& refusal) {
  if (refusal.code == 429) return true;
  return refusal.code >= 500 && (refusal.retry_after || !is_once(request));
}
bool is_worth_repeating(const ApiRequest& request, const Error& error, bool sent) {
  return (!sent || !is_once(request)) &&
         (error.kind == ErrorKind::kUnavailable || error.kind == ErrorKind::kTimeout);
}

/// `take`: of the items of a list, which are not in the answer then.
Result<json> read_answer(const ApiRequest& request, const std::string& text, const TakeItem& take) {
  if (!request.answer) return json::object();
  constexpr auto kWhat = "the API server's answer";
  const auto left_out = request.managed_fields ? LeftOut() : kManagedFields;
  auto object =
      take ? parse_json_items(text, kWhat, "items", take, left_out) : parse_json(text, kWhat, left_out);
  if (object && object->is_object()) return object;
  return fail(ErrorKind::kUnavailable,
              fmt::format("{}: the API server's answer is no object", doing_of(request)),
              "look whether a proxy answers in its place");
}

Error lost_error(const ApiRequest& request, const Error& error, bool sent) {
  auto lost = context(error, doing_of(request));
  if (sent && is_once(request)) lost.hint = "look whether it was made all the same";
  return lost;
}

/// What curl would take as a way up in the path.
bool is_dots(const std::string& part) {
  return part == "." || part == "..";
}

Error stopped_error(const ApiRequest& request) {
  return {ErrorKind::kUnavailable, doing_of(request) + ": it was stopped", "", ""};
}

/// Stops when one of the two does.
class EitherStop {
 public:
  EitherStop(const std::stop_token& first, const std::stop_token& second)
      : first_(first, Request{source_}), second_(second, Request{source_}) {}
  std::stop_token token() const { return source_.get_token(); }

 private:
  struct Request {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };
  std::stop_source source_;
  std::stop_callback<Request> first_;
  std::stop_callback<Request> second_;
};

}  // namespace

Result<std::unique_ptr<ApiClient>> ApiClient::open(ServerConfig config, std::stop_token stop,
                                                   ClientLimits limits, std::uint32_t seed) {
  std::unique_ptr<ApiClient> client(new ApiClient(std::move(config), std::move(stop), limits, seed));
  DROVER_TRY(auto connection, client->take_connection());
  client->give_back(std::move(connection));
  return client;
}

ApiClient::ApiClient(ServerConfig config, std::stop_token stop, ClientLimits limits, std::uint32_t seed)
    : config_(std::move(config)), stop_(std::move(stop)), limits_(limits), seeds_(seed) {}

Result<json> ApiClient::send(const ApiRequest& request, const std::stop_token& stop, const TakeItem& take) {
  using Clock = std::chrono::steady_clock;
  const EitherStop either(stop_, stop);
  const bool is_patient = request.patience.count() == 0;
  const auto deadline = Clock::now() + (is_patient ? limits_.call : request.patience);
  Backoff backoff(limits_.first_pause, limits_.longest_pause, next_seed());
  for (int attempts = 1;; ++attempts) {
    const auto left = std::chrono::ceil<std::chrono::seconds>(deadline - Clock::now());
    const auto longest = is_patient ? limits_.attempt : std::clamp(left, 1s, limits_.attempt);
    const HttpLimits limits{kMostAnswer, longest, std::min(kStall, longest)};
    const auto [answer, sent] = attempt(request, limits, either.token(), {});
    if (either.token().stop_requested()) return Failure(stopped_error(request));
    if (answer && is_good(answer->status)) return read_answer(request, answer->text, take);
    Refusal refusal;
    if (answer) {
      refusal = read_refusal(answer->status, answer->text);
      if (const auto wait = retry_after_of(*answer)) refusal.retry_after = wait;
    }
    const bool again =
        answer ? is_worth_repeating(request, refusal) : is_worth_repeating(request, answer.error(), sent);
    const auto wait = std::max<std::chrono::milliseconds>(
        backoff.next(), refusal.retry_after.value_or(std::chrono::seconds(0)));
    if (!again || attempts >= limits_.attempts || Clock::now() + wait > deadline)
      return Failure(answer ? refusal_error(refusal, doing_of(request), request)
                            : lost_error(request, answer.error(), sent));
    if (!pause(wait, either.token())) return Failure(stopped_error(request));
  }
}

Status ApiClient::watch(const WatchRequest& watch, const TakeEvent& take, const std::stop_token& stop) {
  const EitherStop either(stop_, stop);
  const auto& selection = watch.selection;
  ApiRequest request{.verb = "watch",
                     .path = {selection.resource, selection.name_space},
                     .query = {{"watch", "true"},
                               {"allowWatchBookmarks", "true"},
                               {"resourceVersion", watch.resource_version},
                               {"timeoutSeconds", std::to_string(limits_.watch.count())}}};
  if (!selection.label_selector.empty()) request.query["labelSelector"] = selection.label_selector;
  if (!selection.field_selector.empty()) request.query["fieldSelector"] = selection.field_selector;
  LineReader lines;
  Status taken;
  const auto on_piece = [&](const HttpAnswer&, std::string_view piece) -> Status {
    taken = lines.feed(piece, [&](std::string_view line) -> Status {
      if (either.token().stop_requested()) return Failure(stopped_error(request));
      DROVER_TRY(const auto event, parse_watch_line(line, selection));
      return take(event);
    });
    return taken;
  };
  HttpLimits limits;
  limits.duration = limits_.watch + limits_.attempt;
  limits.stall = limits_.watch_quiet;
  const auto answer = attempt(request, limits, either.token(), on_piece).answer;
  return taken ? end_of_stream(request, answer, either.token()) : taken;
}

Status ApiClient::read(const ApiRequest& request, const TakeText& take, const std::stop_token& stop) {
  const EitherStop either(stop_, stop);
  Status taken;
  const auto on_piece = [&](const HttpAnswer&, std::string_view piece) { return taken = take(piece); };
  HttpLimits limits;
  limits.duration = limits.stall = kLongestText;
  const auto answer = attempt(request, limits, either.token(), on_piece).answer;
  return taken ? end_of_stream(request, answer, either.token()) : taken;
}

Status ApiClient::end_of_stream(const ApiRequest& request, const Result<Answer>& answer,
                                const std::stop_token& stop) {
  if (stop.stop_requested()) return Failure(stopped_error(request));
  if (!answer) return Failure(context(answer.error(), doing_of(request)));
  if (is_good(answer->status)) return {};
  return Failure(refusal_error(read_refusal(answer->status, answer->text), doing_of(request), request));
}

ApiClient::Outcome ApiClient::attempt(const ApiRequest& request, const HttpLimits& limits,
                                      const std::stop_token& stop, const HttpClient::Body& take) {
  auto http = http_request(request);
  if (!http) return {Failure(http.error())};
  http->limits = limits;
  http->send_once = is_once(request);
  auto connection = take_connection();
  if (!connection) return {Failure(connection.error())};
  Answer answer;
  const auto on_piece = [&](const HttpAnswer& head, std::string_view piece) -> Status {
    if (take && is_good(head.status)) return take(head, piece);
    const auto most = is_good(head.status) ? kMostAnswer : kMostRefusal;
    answer.text += piece.substr(0, most - std::min<std::size_t>(most, answer.text.size()));
    return {};
  };
  const auto go_on = [&](const HttpAnswer&, std::uint64_t, std::uint64_t) -> Status {
    if (stop.stop_requested()) return fail(ErrorKind::kUnavailable, "it was stopped");
    return {};
  };
  auto head = connection->perform(*http, on_piece, go_on);
  const bool sent = connection->has_sent();
  if (!head) return {Failure(transport_error(head.error())), sent};
  give_back(std::move(*connection));
  static_cast<HttpAnswer&>(answer) = std::move(*head);
  return {std::move(answer), sent};
}

Error ApiClient::transport_error(Error error) const {
  if (error.kind != ErrorKind::kPermissionDenied)
    return context(std::move(error), fmt::format("the API server at '{}' does not answer", config_.url));
  error.hint = fmt::format("the certificate-authority of {} must be the one that signed it", config_.source);
  return context(std::move(error), fmt::format("the certificate of '{}' is not trusted", config_.url));
}

Result<std::string> ApiClient::secret(const Secret& secret) const {
  auto text = read_secret(secret);
  if (text) return text;
  // Of whatever kind the failure is: it says nothing of the object that was asked for.
  auto error = context(text.error(), config_.source);
  error.kind = ErrorKind::kUnavailable;
  return Failure(std::move(error));
}

Result<HttpRequest> ApiClient::http_request(const ApiRequest& request) const {
  const auto& path = request.path;
  for (const auto& part : {path.name_space, path.name, path.resource.plural})
    if (is_dots(part))
      return fail(ErrorKind::kInvalid, fmt::format("'{}' is no name that an object can have", part));
  HttpRequest http{.url = config_.url + url_path(path), .follow_redirects = false, .http2 = false};
  char separator = '?';
  for (const auto& [name, value] : request.query) {
    http.url += separator + name + "=" + url_text(value);
    separator = '&';
  }
  http.method = kMethods.at(request.verb);
  http.headers.emplace_back("Accept: application/json");
  if (!request.body.empty()) http.content = {request.content_type, request.body};
  DROVER_TRY(const auto written, secret(config_.token));
  const std::string token(trimmed(written));
  if (!std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; }))
    return fail(ErrorKind::kInvalid, fmt::format("the token of {} is no token", config_.source));
  if (!token.empty()) http.headers.push_back("Authorization: Bearer " + token);
  HttpTrust trust;
  DROVER_TRY(trust.authorities, secret(config_.authorities));
  DROVER_TRY(trust.certificate, secret(config_.certificate));
  DROVER_TRY(trust.key, secret(config_.key));
  trust.alone = !config_.authorities.empty();
  http.trust = std::make_shared<const HttpTrust>(std::move(trust));
  return http;
}

Result<HttpClient> ApiClient::take_connection() {
  std::vector<Idle> old;  // ended when the lock is open again
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty() && std::chrono::steady_clock::now() - idle_.back().since < limits_.idle) {
      auto connection = std::move(idle_.back().connection);
      idle_.pop_back();
      return connection;
    }
    old.swap(idle_);
  }
  return HttpClient::create();
}

void ApiClient::give_back(HttpClient connection) {
  const auto now = std::chrono::steady_clock::now();
  std::vector<Idle> old;
  const std::lock_guard lock(mutex_);
  auto end = std::ranges::find_if(idle_, [&](const Idle& idle) { return now - idle.since < limits_.idle; });
  if (end == idle_.begin() && idle_.size() == kMostIdle) ++end;
  std::move(idle_.begin(), end, std::back_inserter(old));
  idle_.erase(idle_.begin(), end);
  idle_.push_back({std::move(connection), now});
}

std::uint32_t ApiClient::next_seed() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint32_t>(seeds_());
}

}  // namespace drover::kube

#include "api/router.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

namespace drover::api {
namespace {

struct Match {
  std::map<std::string, std::string> parameters;
  std::size_t literal =
      0;  ///< segments that the template names; of several routes, the one with most is meant
};

std::vector<std::string_view> segments_of(std::string_view path) {
  std::vector<std::string_view> segments;
  if (path == "/") return segments;
  while (!path.empty()) {
    path.remove_prefix(1);
    segments.push_back(path.substr(0, path.find('/')));
    path.remove_prefix(segments.back().size());
  }
  return segments;
}

std::optional<Match> match(std::string_view path, const std::vector<std::string>& given) {
  const auto expected = segments_of(path);
  Match match;
  std::size_t at = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto segment = expected[i];
    const auto after = expected.size() - i - 1;
    if (given.size() < at + 1 + after) return std::nullopt;
    if (segment.ends_with("...}")) {
      const auto end = given.begin() + static_cast<std::ptrdiff_t>(given.size() - after);
      const auto begin = given.begin() + static_cast<std::ptrdiff_t>(at);
      match.parameters.emplace(segment.substr(1, segment.size() - 5),
                               fmt::format("{}", fmt::join(begin, end, "/")));
      at = given.size() - after;
    } else if (segment.starts_with('{')) {
      if (given[at].empty()) return std::nullopt;
      match.parameters.emplace(segment.substr(1, segment.size() - 2), given[at++]);
    } else {
      if (segment != given[at++]) return std::nullopt;
      ++match.literal;
    }
  }
  if (at != given.size()) return std::nullopt;
  return match;
}

bool is_json(std::string_view content_type) {
  content_type = content_type.substr(0, content_type.find(';'));
  while (content_type.ends_with(' ')) content_type.remove_suffix(1);
  return content_type == "application/json";
}

bool is_marathon(const Request& request) {
  return !request.segments.empty() && request.segments.front() == "v2";
}

bool is_chronos(const Request& request) {
  const auto& segments = request.segments;
  return !segments.empty() && (segments.front() == "scheduler" ||
                               (segments.size() > 1 && segments[0] == "v1" && segments[1] == "scheduler"));
}

/// On paths of Marathon and of Chronos, slashes that are doubled or at the end do not count; on those of
/// Mesos the ones at the end.
void drop_needless_slashes(Request& request) {
  auto segments = request.segments;
  std::erase(segments, "");
  std::swap(segments, request.segments);
  if (is_marathon(request) || is_chronos(request)) return;
  std::swap(segments, request.segments);
  if (!request.segments.empty() && request.segments.front() == "v1") return;
  while (!request.segments.empty() && request.segments.back().empty()) request.segments.pop_back();
}

/// A body without a type is what a route of Marathon or of Chronos wants: there, as JAX-RS has it. No page of
/// another site can make use of that: it is told by its `Origin`.
bool is_taken_as_json(const Request& request) {
  if (request.content_type.empty()) return is_marathon(request) || is_chronos(request);
  return is_json(request.content_type);
}

/// Clients of Marathon and of Chronos read a "message".
Response refuse(const Request& request, const Error& error, std::optional<int> status = std::nullopt) {
  auto response = error_response(error, status);
  if (is_marathon(request) || is_chronos(request))
    response.body = json_response({{"message", to_string(error)}}).body;
  return response;
}

Response method_not_allowed(const Request& request, const std::set<std::string>& allowed) {
  auto response = refuse(request,
                         {ErrorKind::kInvalid, fmt::format("'{}' is not possible here", request.method),
                          fmt::format("possible: {}", fmt::join(allowed, ", ")), ""},
                         405);
  response.headers.emplace_back("Allow", fmt::format("{}", fmt::join(allowed, ", ")));
  return response;
}

}  // namespace

std::uint64_t body_limit(std::span<const Route> routes, const Request& request) {
  std::uint64_t limit = 0;
  for (const auto& route : routes)
    if (route.body_bytes > limit && (route.method == request.method || route.method == "*") &&
        match(route.path, request.segments))
      limit = route.body_bytes;
  return limit;
}

asio::awaitable<Response> route(std::span<const Route> routes, const Services& services, Request request) {
  drop_needless_slashes(request);
  const std::string_view wanted = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  const Route* found = nullptr;
  std::size_t most_literal = 0;
  std::set<std::string> allowed;
  for (const auto& candidate : routes) {
    auto matched = match(candidate.path, request.segments);
    if (!matched) continue;
    allowed.emplace(candidate.method);
    if (candidate.method == "GET") allowed.emplace("HEAD");
    if (candidate.method != wanted && candidate.method != "*") continue;
    if (found != nullptr && matched->literal < most_literal) continue;
    found = &candidate;
    most_literal = matched->literal;
    request.parameters = std::move(matched->parameters);
  }
  if (allowed.empty())
    co_return refuse(request, {ErrorKind::kNotFound,
                               fmt::format("There is nothing at '/{}'", fmt::join(request.segments, "/")),
                               "docs/openapi.yaml lists what there is", ""});
  if (found == nullptr) co_return method_not_allowed(request, allowed);
  if (request.metrics_reader && found->for_metrics)
    request.caller = engine::Caller{User{0, 0, {}, "root", "/root"}};
  if (request.metrics_reader && !request.caller && !found->open)
    co_return refuse(request, {ErrorKind::kPermissionDenied,
                               "The secret of a metrics reader is good for GET /v1/metrics alone", "", ""});
  if (!found->open && !found->for_executors && !request.executor.empty())
    co_return refuse(request, {ErrorKind::kPermissionDenied,
                               "The token of an executor is good for the executor API alone", "", ""});
  if (!found->open && !found->for_executors && !request.caller)
    co_return refuse(request,
                     {ErrorKind::kUnauthenticated, "This needs a token",
                      "send 'Authorization: Bearer TOKEN'; the daemon's credentials file has it", ""});
  if (!found->raw && !request.body.empty() && !is_taken_as_json(request))
    co_return refuse(request,
                     {ErrorKind::kInvalid, fmt::format("The body is '{}', not JSON", request.content_type),
                      "send it as 'Content-Type: application/json'", ""},
                     415);
  auto result = co_await found->handler(services, request);
  if (!result) co_return refuse(request, result.error());
  co_return std::move(*result);
}

}  // namespace drover::api

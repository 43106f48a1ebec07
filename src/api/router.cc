#include "api/router.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace drover::api {
namespace {

/// The next segment of a path template; takes it off.
std::string_view take_segment(std::string_view& path) {
  path.remove_prefix(1);
  const auto segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  return segment;
}

std::optional<std::map<std::string, std::string>> match(std::string_view path,
                                                        const std::vector<std::string>& segments) {
  std::map<std::string, std::string> parameters;
  for (const auto& given : segments) {
    if (path.empty()) return std::nullopt;
    const auto expected = take_segment(path);
    if (expected.starts_with('{')) {
      if (given.empty()) return std::nullopt;
      parameters.emplace(expected.substr(1, expected.size() - 2), given);
    } else if (expected != given) {
      return std::nullopt;
    }
  }
  if (!path.empty()) return std::nullopt;
  return parameters;
}

Response method_not_allowed(const std::string& method, const std::set<std::string>& allowed) {
  auto response = error_response({ErrorKind::kInvalid, fmt::format("'{}' is not possible here", method),
                                  fmt::format("possible: {}", fmt::join(allowed, ", ")), ""},
                                 405);
  response.headers.emplace_back("Allow", fmt::format("{}", fmt::join(allowed, ", ")));
  return response;
}

bool is_json(std::string_view content_type) {
  content_type = content_type.substr(0, content_type.find(';'));
  while (content_type.ends_with(' ')) content_type.remove_suffix(1);
  return content_type == "application/json";
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
  const std::string_view wanted = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  const Route* found = nullptr;
  std::set<std::string> allowed;
  for (const auto& candidate : routes) {
    auto parameters = match(candidate.path, request.segments);
    if (!parameters) continue;
    allowed.emplace(candidate.method);
    if (candidate.method == "GET") allowed.emplace("HEAD");
    if (candidate.method != wanted && candidate.method != "*") continue;
    found = &candidate;
    request.parameters = std::move(*parameters);
  }
  if (allowed.empty())
    co_return error_response({ErrorKind::kNotFound,
                              fmt::format("There is nothing at '/{}'", fmt::join(request.segments, "/")),
                              "docs/openapi.yaml lists what there is", ""});
  if (found == nullptr) co_return method_not_allowed(request.method, allowed);
  if (!found->open && !request.caller)
    co_return error_response({ErrorKind::kUnauthenticated, "This needs a token",
                              "send 'Authorization: Bearer TOKEN'; the daemon's credentials file has it",
                              ""});
  if (!found->raw && !request.body.empty() && !is_json(request.content_type))
    co_return error_response(
        {ErrorKind::kInvalid, fmt::format("The body is '{}', not JSON", request.content_type),
         "send it as 'Content-Type: application/json'", ""},
        415);
  auto result = co_await found->handler(services, request);
  if (!result) co_return error_response(result.error());
  co_return std::move(*result);
}

}  // namespace drover::api

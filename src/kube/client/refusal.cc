#include "kube/client/refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/http_client.h"
#include "base/shorten.h"

namespace drover::kube {
namespace {

constexpr int kLongestRetryAfter = 24 * 3600;

std::int64_t number_at(const nlohmann::json& object, const char* pointer) {
  const nlohmann::json::json_pointer place(pointer);
  if (!object.contains(place) || !object[place].is_number_integer()) return 0;
  return object[place].get<std::int64_t>();
}

/// One line, without what could drive a terminal.
std::string one_line(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  while (text.ends_with(' ') || text.ends_with('.')) text.pop_back();
  return shortened(std::move(text));
}

ErrorKind kind_of(int code) {
  switch (code) {
    case 401:
      return ErrorKind::kUnauthenticated;
    case 403:
      return ErrorKind::kPermissionDenied;
    case 404:
    case 410:
      return ErrorKind::kNotFound;
    case 409:
      return ErrorKind::kConflict;
    case 405:
    case 406:
    case 415:
      return ErrorKind::kUnsupported;
    case 408:
    case 504:
      return ErrorKind::kTimeout;
    case 413:
      return ErrorKind::kExhausted;
    case 429:
      return ErrorKind::kUnavailable;
    default:
      return code >= 400 && code < 500 ? ErrorKind::kInvalid : ErrorKind::kUnavailable;
  }
}

std::string hint_of(int code, const ApiRequest& request) {
  if (code == 401)
    return "its token or certificate is not accepted: is it of this cluster, and has it expired?";
  if (code != 403) return "";
  const auto& resource = request.path.resource;
  const auto& subresource = request.path.subresource;
  return fmt::format("give its account the right to '{}' '{}' of the API group '{}'", request.verb,
                     resource.plural + (subresource.empty() ? "" : "/" + subresource), resource.group);
}

}  // namespace

Refusal read_refusal(const nlohmann::json& status) {
  Refusal refusal;
  refusal.code = static_cast<int>(std::clamp<std::int64_t>(number_at(status, "/code"), 0, 599));
  refusal.message = one_line(text_at(status, "/message"));
  const auto wait = number_at(status, "/details/retryAfterSeconds");
  if (wait > 0) refusal.retry_after = std::chrono::seconds(std::min<std::int64_t>(wait, kLongestRetryAfter));
  return refusal;
}

Refusal read_refusal(int http_status, std::string_view body) {
  Refusal refusal;
  const auto document = parse_json(body, "the answer");
  if (document && document->is_object() && text_at(*document, "/kind") == "Status")
    refusal = read_refusal(*document);
  refusal.code = http_status;
  return refusal;
}

Error refusal_error(const Refusal& refusal, std::string_view doing, const ApiRequest& request) {
  const auto said =
      refusal.message.empty() ? "the API server answered " + http_status_text(refusal.code) : refusal.message;
  return {kind_of(refusal.code), fmt::format("{}: {}", doing, said), hint_of(refusal.code, request), ""};
}

}  // namespace drover::kube

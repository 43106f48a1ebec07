#include "api/mesos/media_type.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace drover::api::mesos {
namespace {

/// Takes what stands before the next `separator`.
std::string_view take(std::string_view& text, char separator) {
  const auto part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return trimmed(part);
}

/// "q=0", "q=0.0": not acceptable (RFC 9110, 12.4.2).
bool is_refusal(std::string_view parameter) {
  if (!parameter.starts_with("q=") && !parameter.starts_with("Q=")) return false;
  const auto weight = parameter.substr(2);
  return weight.starts_with('0') && weight.find_first_not_of("0.") == std::string_view::npos;
}

bool allows(std::string_view accept, std::string_view wanted) {
  while (!accept.empty()) {
    auto range = take(accept, ',');
    const auto type = take(range, ';');
    bool refused = false;
    while (!range.empty()) refused = is_refusal(take(range, ';')) || refused;
    if (!refused &&
        (type == "*/*" || equal_without_case(type, "application/*") || equal_without_case(type, wanted)))
      return true;
  }
  return false;
}

constexpr std::array kTypes = {MediaType::kJson, MediaType::kProtobuf};

}  // namespace

std::string_view to_string(MediaType type) {
  return type == MediaType::kJson ? "application/json" : "application/x-protobuf";
}

std::optional<MediaType> media_type(std::string_view content_type) {
  const auto name = take(content_type, ';');
  for (const auto type : kTypes)
    if (equal_without_case(name, to_string(type))) return type;
  return std::nullopt;
}

std::optional<MediaType> accepted_type(std::string_view accept) {
  if (trimmed(accept).empty()) return MediaType::kJson;
  for (const auto type : kTypes)
    if (allows(accept, to_string(type))) return type;
  return std::nullopt;
}

}  // namespace drover::api::mesos

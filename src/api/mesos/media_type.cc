#include "api/mesos/media_type.h"

#include <algorithm>
#include <array>

namespace drover::api::mesos {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

/// Takes what stands before the next `separator`.
std::string_view take(std::string_view& text, char separator) {
  const auto part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return trimmed(part);
}

bool same(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
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
    if (!refused && (type == "*/*" || same(type, "application/*") || same(type, wanted))) return true;
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
    if (same(name, to_string(type))) return type;
  return std::nullopt;
}

std::optional<MediaType> accepted_type(std::string_view accept) {
  if (trimmed(accept).empty()) return MediaType::kJson;
  for (const auto type : kTypes)
    if (allows(accept, to_string(type))) return type;
  return std::nullopt;
}

}  // namespace drover::api::mesos

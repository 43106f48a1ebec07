#include "marathon/refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/json_text.h"

namespace drover::marathon {
namespace {

using nlohmann::json;

constexpr std::size_t kMostDetails = 100;
constexpr std::size_t kLongest = 512;
constexpr const char* kWrongType = "Invalid JSON";

}  // namespace

std::string to_json_text(const Refusal& refusal) {
  json body = {{"message", refusal.message}};
  if (!refusal.text.empty()) {
    body["details"] = refusal.text;
  } else if (!refusal.details.empty()) {
    auto& details = body["details"] = json::array();
    for (const auto& detail : refusal.details)
      details.push_back({{"path", detail.path}, {"errors", detail.errors}});
  }
  return to_text(body);
}

Error to_error(const Refusal& refusal, std::string_view what) {
  std::vector<Error> errors;
  for (const auto& detail : refusal.details)
    for (const auto& text : detail.errors) errors.push_back({ErrorKind::kInvalid, text, "", detail.path});
  if (!errors.empty()) return join_mistakes(errors, what);
  return {ErrorKind::kInvalid, fmt::format("{}: {}", what, refusal.message), refusal.text, ""};
}

void Mistakes::add(const std::string& path, std::string text) {
  const auto short_path = path.size() > kLongest ? path.substr(0, kLongest) : path;
  if (text.size() > kLongest) text.resize(kLongest);
  const auto found = std::find_if(details_.begin(), details_.end(),
                                  [&](const Detail& detail) { return detail.path == short_path; });
  if (found != details_.end()) {
    if (std::find(found->errors.begin(), found->errors.end(), text) == found->errors.end())
      found->errors.push_back(std::move(text));
  } else if (details_.size() < kMostDetails) {
    details_.push_back({short_path, {std::move(text)}});
  }
}

void Mistakes::wrong_type(const std::string& path, std::string code) {
  any_wrong_type_ = true;
  add(path, std::move(code));
}

void Mistakes::broken_rule(const std::string& path, std::string text) {
  add(path, std::move(text));
}

void Mistakes::add_part(const Refusal& part, const std::string& path) {
  any_wrong_type_ = any_wrong_type_ || part.message == kWrongType;
  for (const auto& detail : part.details)
    for (const auto& text : detail.errors) add(detail.path == "/" ? path : path + detail.path, text);
}

Refusal Mistakes::refusal() const {
  return {422, any_wrong_type_ ? kWrongType : "Object is not valid", details_, ""};
}

}  // namespace drover::marathon

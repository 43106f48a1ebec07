#include "cdi/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/shorten.h"

namespace drover::cdi {
namespace {

constexpr std::size_t kLongestVendor = 253;
constexpr std::size_t kLongestClass = 63;
constexpr std::size_t kLongestName = 253;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_alphanumeric(char c) {
  return is_letter(c) || (c >= '0' && c <= '9');
}

struct PartRule {
  std::string_view what;
  std::size_t longest;
  bool letter_first;
  std::string_view between;
};

Status check_part(std::string_view part, const PartRule& rule) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorKind::kInvalid,
                fmt::format("The {} '{}' {}", rule.what, shortened(std::string(part)), why),
                "a CDI device is called as in vendor.com/class=name");
  };
  if (part.empty()) return wrong("is empty");
  if (part.size() > rule.longest) return wrong(fmt::format("is longer than {} characters", rule.longest));
  if (rule.letter_first && !is_letter(part.front())) return wrong("does not begin with a letter");
  if (!is_alphanumeric(part.front())) return wrong("does not begin with a letter or a digit");
  if (!is_alphanumeric(part.back())) return wrong("does not end with a letter or a digit");
  const auto bad = std::find_if(part.begin(), part.end(), [&](char c) {
    return !is_alphanumeric(c) && rule.between.find(c) == std::string_view::npos;
  });
  if (bad != part.end()) return wrong("has a character in it that is not allowed there");
  return {};
}

}  // namespace

std::string to_string(const DeviceName& name) {
  return name.kind + "=" + name.name;
}

Status check_kind(std::string_view kind) {
  const auto slash = kind.find('/');
  if (slash == std::string_view::npos)
    return fail(ErrorKind::kInvalid,
                fmt::format("The kind '{}' names no vendor", shortened(std::string(kind))),
                "a kind is written as vendor.com/class");
  DROVER_CHECK_OK(check_part(kind.substr(0, slash), {"vendor", kLongestVendor, true, "-_."}));
  return check_part(kind.substr(slash + 1), {"class", kLongestClass, true, "-_."});
}

Status check_name(std::string_view name) {
  return check_part(name, {"device name", kLongestName, false, "-_.:"});
}

Result<DeviceName> parse_device_name(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos)
    return fail(ErrorKind::kInvalid,
                fmt::format("'{}' is not the name of a CDI device", shortened(std::string(text))),
                "it is written as vendor.com/class=name; 'drover cdi list' shows what there is");
  DeviceName name{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
  DROVER_CHECK_OK(check_kind(name.kind));
  DROVER_CHECK_OK(check_name(name.name));
  return name;
}

bool looks_like_device_name(std::string_view text) {
  const auto equals = text.find('=');
  return !text.starts_with('/') && equals != std::string_view::npos &&
         text.substr(0, equals).find('/') != std::string_view::npos;
}

}  // namespace drover::cdi

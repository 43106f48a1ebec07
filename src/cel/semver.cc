#include "cel/semver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/shorten.h"

namespace drover::cel {
namespace {

constexpr std::string_view kDigits = "0123456789";

bool all_of(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == text.npos;
}

std::vector<std::string_view> parts_of(std::string_view text, char separator, std::size_t most) {
  std::vector<std::string_view> parts;
  for (auto end = text.find(separator); end != text.npos && parts.size() + 1 < most;
       end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

std::optional<std::uint64_t> numeric(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool zeros = text.size() > 1 && text[0] == '0';
  if (zeros || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// What stands behind `mark`, taken off: parts between points, none of them empty.
std::optional<std::vector<std::string_view>> taken_behind(std::string_view& text, char mark) {
  const auto begin = text.find(mark);
  if (begin == text.npos) return std::vector<std::string_view>();
  const auto parts = parts_of(text.substr(begin + 1), '.', text.npos);
  text = text.substr(0, begin);
  const auto right = [](std::string_view part) {
    return !part.empty() && all_of(part, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-");
  };
  if (!std::ranges::all_of(parts, right)) return std::nullopt;
  return parts;
}

}  // namespace

Result<Semver> Semver::parse(std::string_view text) {
  const Failure wrong =
      fail(ErrorKind::kInvalid, fmt::format("'{}' is no semantic version", shortened(std::string(text))),
           "it is written as in '1.2.3'");
  auto parts = parts_of(text, '.', 3);
  if (parts.size() != 3) return wrong;
  const auto build = taken_behind(parts[2], '+');
  const auto prerelease = taken_behind(parts[2], '-');
  const auto major = numeric(parts[0]), minor = numeric(parts[1]), patch = numeric(parts[2]);
  if (!build || !prerelease || !major || !minor || !patch) return wrong;
  Semver result{*major, *minor, *patch, {}};
  for (const auto part : *prerelease) {
    if (!all_of(part, kDigits))
      result.prerelease.emplace_back(std::string(part));
    else if (const auto number = numeric(part))
      result.prerelease.emplace_back(*number);
    else
      return wrong;
  }
  return result;
}

Result<Semver> Semver::parse_normalized(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  const auto parts = parts_of(text, '.', 3);
  if (parts.size() < 3 && parts.back().find_first_of("+-") != text.npos)
    return parse(text);  // which refuses it
  std::string full;
  for (std::size_t i = 0; i < 3; ++i) {
    std::string part(i < parts.size() ? parts[i] : "0");
    if (part.size() > 1) {
      part.erase(0, std::min(part.find_first_not_of('0'), part.size()));
      if (part.empty() || kDigits.find(part[0]) == kDigits.npos) part.insert(0, "0");
    }
    full += (i == 0 ? "" : ".") + part;
  }
  return parse(full);
}

std::strong_ordering Semver::operator<=>(const Semver& other) const {
  const auto numbers = [](const Semver& version) {
    return std::array{version.major, version.minor, version.patch};
  };
  if (const auto order = numbers(*this) <=> numbers(other); order != nullptr) return order;
  if (prerelease.empty() || other.prerelease.empty()) return prerelease.empty() <=> other.prerelease.empty();
  return prerelease <=> other.prerelease;
}

}  // namespace drover::cel

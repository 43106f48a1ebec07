#include "base/instant.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "base/time_zone.h"

namespace drover {
namespace {

constexpr std::size_t kUpToSeconds = std::string_view("2018-03-05T23:00:00").size();

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// "Z", "+01:00", "+0100", "-01": the hours have two digits.
std::optional<std::chrono::seconds> offset_of(std::string_view text) {
  if (text == "Z") return std::chrono::seconds(0);
  const auto colon = text.find(':');
  if (colon == 3 ? text.size() != 6 : colon != text.npos || text.size() % 2 == 0) return std::nullopt;
  const auto offset = parse_offset(text);
  return offset ? std::optional(*offset) : std::nullopt;
}

/// "810" of ".81".
std::string milliseconds_of(std::string_view fraction) {
  auto digits = std::string(fraction.substr(std::min<std::size_t>(1, fraction.size())));
  digits.resize(3, '0');
  return digits;
}

}  // namespace

std::optional<TimePoint> parse_instant(std::string_view text) {
  if (text.size() <= kUpToSeconds) return std::nullopt;
  const auto rest = text.substr(kUpToSeconds);
  const auto zone =
      rest.starts_with('.') ? std::find_if_not(rest.begin() + 1, rest.end(), is_digit) - rest.begin() : 0;
  if (zone == 1) return std::nullopt;
  const auto behind = static_cast<std::size_t>(zone);
  const auto offset = offset_of(rest.substr(behind));
  const auto time = parse_time(std::string(text.substr(0, kUpToSeconds)) + "." +
                               milliseconds_of(rest.substr(0, behind)) + "Z");
  if (!offset || !time) return std::nullopt;
  return *time - *offset;
}

}  // namespace drover

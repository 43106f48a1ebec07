#include "marathon/instant.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace drover::marathon {
namespace {

constexpr std::size_t kUpToSeconds = std::string_view("2018-03-05T23:00:00").size();

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// "Z", "+01:00", "+0100", "-01".
std::optional<std::chrono::minutes> parse_offset(std::string_view text) {
  if (text == "Z") return std::chrono::minutes(0);
  std::string digits(text.substr(std::min<std::size_t>(1, text.size())));
  if (digits.size() == 5 && digits[2] == ':') digits.erase(2, 1);
  if (digits.size() == 2) digits += "00";
  if ((!text.starts_with('+') && !text.starts_with('-')) || digits.size() != 4 ||
      !std::ranges::all_of(digits, is_digit))
    return std::nullopt;
  const std::chrono::minutes offset =
      std::chrono::hours(std::stoi(digits.substr(0, 2))) + std::chrono::minutes(std::stoi(digits.substr(2)));
  return text.front() == '-' ? -offset : offset;
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
  const auto offset = parse_offset(rest.substr(behind));
  const auto time = parse_time(std::string(text.substr(0, kUpToSeconds)) + "." +
                               milliseconds_of(rest.substr(0, behind)) + "Z");
  if (!offset || !time) return std::nullopt;
  return *time - *offset;
}

}  // namespace drover::marathon

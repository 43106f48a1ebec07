#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "base/text.h"

namespace drover {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kKibi = 1024.0;
constexpr std::array kByteUnits = {
    Unit{"", 1},
    Unit{"b", 1},
    Unit{"k", kKibi},
    Unit{"kib", kKibi},
    Unit{"kb", 1e3},
    Unit{"m", kKibi* kKibi},
    Unit{"mib", kKibi* kKibi},
    Unit{"mb", 1e6},
    Unit{"g", kKibi* kKibi* kKibi},
    Unit{"gib", kKibi* kKibi* kKibi},
    Unit{"gb", 1e9},
    Unit{"t", kKibi* kKibi* kKibi* kKibi},
    Unit{"tib", kKibi* kKibi* kKibi* kKibi},
    Unit{"tb", 1e12},
};
constexpr std::array kTimeUnits = {Unit{"ms", 1},      Unit{"s", 1e3},        Unit{"", 1e3},
                                   Unit{"m", 60e3},    Unit{"min", 60e3},     Unit{"h", 3600e3},
                                   Unit{"d", 86400e3}, Unit{"w", 7 * 86400e3}};

struct Number {
  double value;
  std::string_view rest;
};

std::optional<Number> leading_number(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  return Number{value, text.substr(static_cast<std::size_t>(end - text.data()))};
}

/// Without spaces, but for those inside of numbers, which are a mistake.
std::string lower_trimmed(std::string_view text) {
  const auto in_number = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  std::string result;
  bool after_space = false;
  for (const char c : text) {
    if (c != ' ') {
      if (after_space && !result.empty() && in_number(result.back()) && in_number(c)) result += ' ';
      result += lower(c);
    }
    after_space = c == ' ';
  }
  return result;
}

template <std::size_t N>
std::optional<double> factor_of(const std::array<Unit, N>& units, std::string_view name) {
  for (const auto& unit : units)
    if (unit.name == name) return unit.factor;
  return std::nullopt;
}

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const auto normal = lower_trimmed(text);
  const auto number = leading_number(normal);
  const auto factor = number ? factor_of(kByteUnits, number->rest) : std::nullopt;
  constexpr double kLimit = 9.0e18;
  if (!factor || number->value * *factor > kLimit)
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a size", text),
                "write for example 512M or 16GiB");
  return static_cast<std::uint64_t>(number->value * *factor);
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= kKibi && unit + 1 < kNames.size()) {
    value /= kKibi;
    ++unit;
  }
  const bool whole = std::abs(value - std::round(value)) < 0.05;
  return fmt::format("{:.{}f} {}", value, whole ? 0 : 1, kNames[unit]);
}

std::string format_part(std::uint64_t done, std::uint64_t total) {
  if (total < done || total == 0) return format_bytes(done);
  const auto whole = format_bytes(total);
  const auto unit = whole.substr(whole.find(' ') + 1);
  const auto size = parse_bytes("1" + unit).value_or(1);
  const auto tenths = done * 10 / std::max<std::uint64_t>(size, 1);
  return total >= 1000 * size || tenths % 10 == 0
             ? fmt::format("{} of {}", tenths / 10, whole)
             : fmt::format("{}.{} of {}", tenths / 10, tenths % 10, whole);
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const auto normal = lower_trimmed(text);
  const auto bad = [&] {
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a duration", text),
                "write for example 30s, 10m or 1h30m");
  };
  std::string_view rest = normal;
  double total = 0;
  do {
    const auto number = leading_number(rest);
    if (!number) return bad();
    auto unit_length = number->rest.find_first_of("0123456789.");
    if (unit_length == std::string_view::npos) unit_length = number->rest.size();
    const auto factor = factor_of(kTimeUnits, number->rest.substr(0, unit_length));
    if (!factor) return bad();
    total += number->value * *factor;
    rest = number->rest.substr(unit_length);
  } while (!rest.empty());
  constexpr double kLimit = 3.2e14;  // ten thousand years
  if (total > kLimit) return bad();
  return std::chrono::milliseconds(static_cast<std::int64_t>(total));
}

std::string format_duration(std::chrono::milliseconds duration) {
  const auto ms = duration.count();
  if (ms < 1000) return fmt::format("{}ms", ms);
  if (ms < 60'000) return fmt::format("{:.1f}s", static_cast<double>(ms) / 1e3);
  const auto seconds = ms / 1000;
  if (seconds < 3600) return fmt::format("{}m {}s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{}h {}m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}d {}h", seconds / 86400, seconds / 3600 % 24);
}

std::string exact_duration(std::chrono::milliseconds duration) {
  constexpr std::array<std::pair<std::int64_t, const char*>, 5> kUnits{
      {{86'400'000, "d"}, {3'600'000, "h"}, {60'000, "m"}, {1000, "s"}, {1, "ms"}}};
  std::string text;
  auto left = duration.count();
  for (const auto& [size, unit] : kUnits) {
    if (left >= size) text += fmt::format("{}{}", left / size, unit);
    left %= size;
  }
  return text.empty() ? "0s" : text;
}

Result<std::int64_t> parse_milli_cpus(std::string_view text) {
  const auto number = leading_number(text);
  if (!number || !number->rest.empty() || number->value > 1e6 || number->value * 1000 < 1)
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a number of CPUs", text),
                "write for example 0.5 or 4");
  return std::llround(number->value * 1000);
}

std::string format_time(TimePoint time) {
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(days);
  const std::chrono::hh_mm_ss clock(time - days);
  // By hand: lists of thousands of tasks have several times in each.
  std::string text = "0000-00-00T00:00:00.000Z";
  const auto put = [&](std::size_t end, auto number) {
    for (auto left = static_cast<unsigned>(number); left > 0; left /= 10)
      text[--end] = static_cast<char>('0' + left % 10);
  };
  put(7, static_cast<unsigned>(date.month()));
  put(10, static_cast<unsigned>(date.day()));
  put(13, clock.hours().count());
  put(16, clock.minutes().count());
  put(19, clock.seconds().count());
  put(23, clock.subseconds().count());
  const int year = static_cast<int>(date.year());
  if (year < 0 || year > 9999) return fmt::format("{:04}{}", year, std::string_view(text).substr(4));
  put(4, year);
  return text;
}

Result<TimePoint> parse_time(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00.000Z";
  // By hand, as above: a table of tasks reads thousands.
  const bool has_form =
      std::equal(text.begin(), text.end(), kForm.begin(), kForm.end(),
                 [](char c, char form) { return form == '0' ? c >= '0' && c <= '9' : c == form; });
  const auto number = [&](std::size_t begin, std::size_t end) {
    int value = 0;
    for (const char digit : text.substr(begin, end - begin)) value = value * 10 + (digit - '0');
    return value;
  };
  if (has_form) {
    const auto date = std::chrono::year(number(0, 4)) / number(5, 7) / number(8, 10);
    const std::chrono::hours hours(number(11, 13));
    const std::chrono::minutes minutes(number(14, 16));
    const std::chrono::seconds seconds(number(17, 19));
    if (date.ok() && hours.count() <= 23 && minutes.count() <= 59 && seconds.count() <= 60)
      return TimePoint(std::chrono::sys_days(date)) + hours + minutes + seconds +
             std::chrono::milliseconds(number(20, 23));
  }
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a time", text),
              "write it as 2018-03-05T23:00:00.000Z");
}

}  // namespace drover

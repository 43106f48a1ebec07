#include "cli/moments.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <ctime>
#include <optional>

namespace drover::cli {
namespace {

std::time_t seconds_of(TimePoint time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::tm local_of(TimePoint time) {
  const auto seconds = seconds_of(time);
  std::tm fields{};
  ::localtime_r(&seconds, &fields);
  return fields;
}

/// `fields` may lie beyond the ends of a month.
TimePoint from_local(std::tm fields) {
  fields.tm_isdst = -1;
  return TimePoint(std::chrono::seconds(::mktime(&fields)));
}

/// All of the text, by a form of strptime().
std::optional<std::tm> read(const std::string& text, const char* form, std::tm fields) {
  const char* end = ::strptime(text.c_str(), form, &fields);
  return end != nullptr && *end == '\0' ? std::optional(fields) : std::nullopt;
}

std::tm midnight_of(std::tm day) {
  day.tm_hour = day.tm_min = day.tm_sec = 0;
  return day;
}

/// "18:00": of the day of `now`.
std::optional<std::tm> read_time_of_day(const std::string& text, TimePoint now) {
  auto day = midnight_of(local_of(now));
  if (text == "midnight") return day;
  if (text == "noon") {
    day.tm_hour = 12;
    return day;
  }
  for (const char* form : {"%H:%M", "%H:%M:%S"})
    if (const auto fields = read(text, form, day)) return fields;
  return std::nullopt;
}

std::optional<TimePoint> read_date(std::string text) {
  const bool utc = text.ends_with('Z');
  if (utc) text.pop_back();
  std::chrono::milliseconds fraction{};
  if (const auto point = text.find('.'); utc && point != text.npos) {
    auto digits = text.substr(point + 1);
    if (digits.find_first_not_of("0123456789") != digits.npos) return std::nullopt;
    digits.resize(3, '0');
    fraction = std::chrono::milliseconds(std::stoi(digits));
    text.erase(point);
  }
  constexpr std::array kForms = {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M",
                                 "%Y-%m-%d %H:%M:%S"};
  for (const char* form : kForms) {
    auto fields = read(text, form, std::tm{});
    if (!fields) continue;
    return utc ? TimePoint(std::chrono::seconds(::timegm(&*fields)) + fraction) : from_local(*fields);
  }
  return std::nullopt;
}

std::optional<TimePoint> find_moment(std::string_view text, TimePoint now) {
  if (text == "now") return now;
  const std::string word(text);
  auto day = midnight_of(local_of(now));
  if (word == "tomorrow") ++day.tm_mday;
  if (word == "today" || word == "tomorrow") return from_local(day);
  if (const auto fields = read_time_of_day(word, now)) return from_local(*fields);
  return read_date(word);
}

}  // namespace

Result<TimePoint> parse_moment(std::string_view text, TimePoint now) {
  if (const auto moment = find_moment(text, now)) return *moment;
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is no time", text),
              "write for example 18:00, tomorrow, 2026-11-23 or 2026-11-23T10:00Z");
}

Result<TimePoint> parse_since(std::string_view text, TimePoint now) {
  if (const auto ago = parse_duration(text)) return now - *ago;
  if (const auto moment = find_moment(text, now)) return *moment;
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is neither a time nor so long ago", text),
              "write for example 2h, 10:00, 2026-11-23 or 2026-11-23T10:00Z");
}

Result<TimePoint> parse_begin(std::string_view text, TimePoint now) {
  const auto length = text.starts_with("now+") ? text.substr(4) : text;
  if (const auto in = parse_duration(length)) return now + *in;
  if (auto fields = read_time_of_day(std::string(text), now)) {
    if (from_local(*fields) < now) ++fields->tm_mday;
    return from_local(*fields);
  }
  if (const auto moment = find_moment(text, now)) return *moment;
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is neither a time nor a duration", text),
              "write for example 2h, 18:00, tomorrow, 2026-11-27 or 2026-11-27T18:00");
}

}  // namespace drover::cli

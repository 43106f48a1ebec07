#include "workload/cron.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <set>
#include <string>
#include <vector>

#include "base/decode.h"

namespace drover::workload {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::hours;
using std::chrono::local_days;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::size_t kLongestCron = 500;
constexpr const char* kCronExample = "write it as for example 30 2 * * mon-fri";

constexpr std::array<std::string_view, 7> kWeekdays = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kShortForms = {{
    {"@hourly", "0 * * * *"},
    {"@daily", "0 0 * * *"},
    {"@midnight", "0 0 * * *"},
    {"@weekly", "0 0 * * 0"},
    {"@monthly", "0 0 1 * *"},
    {"@yearly", "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"},
}};

Failure wrong(std::string why, std::string hint = kCronExample) {
  return fail(ErrorKind::kInvalid, std::move(why), std::move(hint));
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = std::min(text.find_first_of(separators), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words_of(std::string_view text) {
  auto words = split(text, " \t");
  std::erase(words, "");
  return words;
}

/// One of the five, and what may stand in it.
struct CronField {
  std::string_view name;
  int low, high;
  const std::string_view* names;  ///< of the numbers from `low` on; null for none
  std::size_t name_count;
};
constexpr std::array<CronField, 5> kFields = {{
    {"minute", 0, 59, nullptr, 0},
    {"hour", 0, 23, nullptr, 0},
    {"day of the month", 1, 31, nullptr, 0},
    {"month", 1, 12, kMonths.data(), kMonths.size()},
    {"day of the week", 0, 7, kWeekdays.data(), kWeekdays.size()},
}};

std::optional<int> digits_in(std::string_view text) {
  int number = 0;
  const auto* last = text.data() + text.size();
  if (text.empty() || text.size() > 4 || text.front() == '-') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), last, number);
  return error == std::errc() && end == last ? std::optional(number) : std::nullopt;
}

Failure outside(const CronField& field, std::string_view what, std::string_view text, int low) {
  return wrong(fmt::format("{} '{}' is not between {} and {}", what, text, low, field.high));
}

Result<int> value_of(const CronField& field, std::string_view text) {
  if (const auto number = digits_in(text)) {
    if (*number >= field.low && *number <= field.high) return *number;
    return outside(field, fmt::format("the {}", field.name), text, field.low);
  }
  const auto same = [&](std::string_view name) {
    return std::ranges::equal(name, text, [](char a, char b) { return a == (b | 0x20); });
  };
  for (std::size_t i = 0; i < field.name_count; ++i)
    if (same(field.names[i])) return field.low + static_cast<int>(i);
  return wrong(fmt::format("the {} '{}' cannot be read", field.name, text));
}

/// "*/10", "8-18/2", "mon-fri", "5".
Result<std::uint64_t> element_of(const CronField& field, std::string_view text) {
  const auto slash = text.find('/');
  const auto range = text.substr(0, slash);
  const auto dash = range.find('-');
  int first = field.low, last = field.high, step = 1;
  if (range != "*") {
    DROVER_TRY(first, value_of(field, range.substr(0, dash)));
    last = first;
    if (dash != range.npos) {
      DROVER_TRY(last, value_of(field, range.substr(dash + 1)));
      if (field.high == 7 && last == 0 && first > 0) last = 7;  // Sunday ends the week as well
    }
    if (last < first)
      return wrong(fmt::format("the range '{}' of the {} goes backwards", range, field.name),
                   "write it as two of them, with a comma between");
  }
  if (slash != text.npos) {
    const auto written = text.substr(slash + 1);
    if (range != "*" && dash == range.npos)
      return wrong(fmt::format("the {} '{}' has a step and no range", field.name, text),
                   fmt::format("write it as {}-{}/{}", range, field.high, written));
    const auto given = digits_in(written);
    if (!given || *given < 1 || *given > field.high)
      return outside(field, fmt::format("the step of the {}", field.name), written, 1);
    step = *given;
  }
  std::uint64_t set = 0;
  for (int value = first; value <= last; value += step) set |= 1ULL << value;
  return set;
}

Result<std::uint64_t> set_of(const CronField& field, std::string_view text) {
  std::uint64_t set = 0;
  for (const auto element : split(text, ",")) {
    DROVER_TRY(const auto more, element_of(field, element));
    set |= more;
  }
  return set;
}

/// The five fields that a name stands for.
Result<std::string_view> long_form(std::string_view name) {
  std::set<std::string> known;
  for (const auto& [shortened, whole] : kShortForms) {
    if (name == shortened) return whole;
    known.emplace(shortened);
  }
  if (name == "@reboot")
    return wrong("'@reboot' is not a time: what runs goes on when the daemon starts again",
                 "what is to run all the time is an app");
  const auto near = nearest(name, known);
  return wrong(fmt::format("there is no '{}'", name),
               near.empty() ? fmt::format("there are {}", fmt::join(known, ", "))
                            : fmt::format("did you mean '{}'?", near));
}

Result<std::vector<std::string_view>> fields_of(std::string_view text) {
  if (text.size() > kLongestCron) return wrong(fmt::format("it is longer than {} characters", kLongestCron));
  auto fields = words_of(text);
  if (fields.size() == 1 && fields.front().starts_with('@')) {
    DROVER_TRY(const auto whole, long_form(fields.front()));
    fields = words_of(whole);
  }
  if (fields.size() == kFields.size()) return fields;
  if (fields.size() == kFields.size() + 1)
    return wrong("it has six fields: cron knows no seconds",
                 "leave the first one out; what comes more often than each minute is written as R//PT30S");
  return wrong(
      fmt::format("it has {} field{} of cron's five: minute, hour, day of the month, month and day of "
                  "the week",
                  fields.size(), fields.size() == 1 ? "" : "s"));
}

/// Where the clock is changed, and what it is away from UTC.
struct ClockChange {
  TimePoint at;
  seconds before, after;
};

/// The one after `from` and not after `until`. They are no more than days apart: there is but one.
std::optional<ClockChange> change_between(const TimeZone& zone, TimePoint from, TimePoint until) {
  const auto before = zone.offset_at(from);
  if (before == zone.offset_at(until)) return std::nullopt;
  auto low = floor<seconds>(from), high = floor<seconds>(until);
  while (high - low > seconds(1)) {
    const auto middle = low + (high - low) / 2;
    (zone.offset_at(middle) == before ? low : high) = middle;
  }
  return ClockChange{high, before, zone.offset_at(high)};
}

bool is_in(std::uint64_t set, unsigned value) {
  return (set >> value & 1) != 0;
}

int lowest(std::uint64_t set) {
  return std::countr_zero(set);
}

int highest(std::uint64_t set) {
  return std::bit_width(set) - 1;
}

/// The lowest that is not below `value`; none is 64.
int lowest_from(std::uint64_t set, std::int64_t value) {
  return value > 63 ? 64 : lowest(set >> value << value);
}

WallTime shown_at(TimePoint time, seconds offset) {
  return WallTime(time.time_since_epoch() + offset);
}

TimePoint when_shown(WallTime wall, seconds offset) {
  return TimePoint(wall.time_since_epoch() - offset);
}

constexpr hours kDay(24);

}  // namespace

Result<Cron> Cron::parse(std::string_view text) {
  DROVER_TRY(const auto fields, fields_of(text));
  Cron cron;
  const std::array sets = {&cron.minutes_, &cron.hours_, &cron.days_, &cron.months_, &cron.weekdays_};
  for (std::size_t i = 0; i < sets.size(); ++i) {
    DROVER_TRY(*sets.at(i), set_of(kFields.at(i), fields[i]));
  }
  if (is_in(cron.weekdays_, 7)) cron.weekdays_ |= 1;
  cron.every_hour_ = fields[1].starts_with('*');
  cron.either_day_ = !fields[2].starts_with('*') && !fields[4].starts_with('*');
  if (!cron.ever_comes())
    return wrong("it never comes true: none of its months has such a day", "name another day or month");
  return cron;
}

bool Cron::is_meant(std::string_view text) {
  const auto words = words_of(text.substr(0, kLongestCron));
  if (words.empty() || words.front().starts_with('R')) return false;
  const auto c = words.front().front();
  return c == '@' || c == '*' || (c >= '0' && c <= '9' && words.size() > 1) || words.size() >= kFields.size();
}

bool Cron::ever_comes() const {
  if (either_day_) return true;
  for (unsigned month = 1; month <= 12; ++month) {
    const auto last = (std::chrono::year(2000) / month / std::chrono::last).day();  // has a 29 February
    if (is_in(months_, month) && lowest(days_) <= static_cast<int>(static_cast<unsigned>(last))) return true;
  }
  return false;
}

bool Cron::is_on(local_days date) const {
  const std::chrono::year_month_day on(date);
  const bool day = is_in(days_, static_cast<unsigned>(on.day()));
  const bool weekday = is_in(weekdays_, std::chrono::weekday(date).c_encoding());
  return is_in(months_, static_cast<unsigned>(on.month())) && (either_day_ ? day || weekday : day && weekday);
}

/// The first time of the fields that is not before this one, on a clock that is never changed.
WallTime Cron::next_wall(WallTime from) const {
  const auto time = std::chrono::ceil<minutes>(from);
  auto date = floor<days>(time);
  if (is_on(date)) {
    const auto of_day = time - date;
    const auto hour = floor<hours>(of_day);
    const auto minute = lowest_from(minutes_, (of_day - hour).count());
    if (is_in(hours_, static_cast<unsigned>(hour.count())) && minute < 64)
      return date + hour + minutes(minute);
    if (const auto later = lowest_from(hours_, hour.count() + 1); later < 64)
      return date + hours(later) + minutes(lowest(minutes_));
  }
  do {
    ++date;
    const std::chrono::year_month_day on(date);
    if (!is_in(months_, static_cast<unsigned>(on.month())))
      date = local_days(on.year() / on.month() / std::chrono::last);
  } while (!is_on(date));
  return date + hours(lowest(hours_)) + minutes(lowest(minutes_));
}

std::optional<TimePoint> Cron::first_not_before(TimePoint time, const TimeZone& zone) const {
  // From one change of the clock to the next, a day at a time; what cannot be is left out.
  while (time <= kLastTime) {
    const auto offset = zone.offset_at(time);
    const auto last = change_between(zone, time - kDay, time);
    const auto next = change_between(zone, time, time + kDay);
    auto from = shown_at(time, offset);
    if (last && !every_hour_) from = std::max(from, shown_at(last->at, last->before));  // else a second time
    auto found = when_shown(next_wall(from), offset);
    if (last && !every_hour_ && last->after > last->before) {
      const auto skipped = next_wall(shown_at(time, last->before));
      if (skipped < shown_at(last->at, last->after))
        found = std::min(found, when_shown(skipped, last->before));
    }
    const auto until = next ? next->at : time + kDay;
    if (found < until) return found <= kLastTime ? std::optional(found) : std::nullopt;
    time = std::max(until, found - 2 * kDay);
  }
  return std::nullopt;
}

/// All of the hour or the day that begins with this one; none when the clock is changed in it.
std::optional<Cron::Passed> Cron::whole(TimePoint first, minutes unit, const TimeZone& zone) const {
  const auto wall = zone.to_wall(first);
  const auto hour = floor<hours>(wall);
  const bool day = unit == kDay;
  if (wall - hour != minutes(lowest(minutes_))) return std::nullopt;
  if (day && hour - floor<days>(wall) != hours(lowest(hours_))) return std::nullopt;
  auto last = first + minutes(highest(minutes_) - lowest(minutes_));
  if (day) last += hours(highest(hours_) - lowest(hours_));
  if (const auto change = change_between(zone, first - kDay, last);
      change && first < change->at + std::chrono::abs(change->after - change->before))
    return std::nullopt;
  const std::int64_t count = std::popcount(minutes_) * (day ? std::popcount(hours_) : 1);
  return Passed{count, last, last + std::chrono::milliseconds(1)};
}

Cron::Passed Cron::pass(TimePoint from, TimePoint until, std::int64_t most, const TimeZone& zone) const {
  Passed passed{0, from, from};
  while (passed.count < most) {
    const auto next = first_not_before(passed.end, zone);
    if (!next || *next >= until) break;
    Passed more{1, *next, *next + std::chrono::milliseconds(1)};
    for (const minutes unit : {minutes(kDay), minutes(60)}) {
      const auto together = whole(*next, unit, zone);
      if (!together || together->last >= until || together->count > most - passed.count) continue;
      more = *together;
      break;
    }
    passed = {passed.count + more.count, more.last, more.end};
  }
  return passed;
}

}  // namespace drover::workload

#include "workload/repetition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace drover::workload {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t kMostCount = 1'000'000'000'000;
constexpr std::int64_t kMostMonths = 10'000 * 12;
constexpr std::int64_t kMostDays = 10'000 * 366;
constexpr milliseconds kMostTime = std::chrono::hours(kMostDays * 24);
constexpr std::size_t kLongestShown = 100;

struct Number {
  std::int64_t value = 0;
  std::size_t digits = 0;
};

constexpr std::size_t kMostDigits = 18;  ///< so many always fit

/// The digits in front; more than kMostDigits make `digits` 0.
Number take_number(std::string_view& text) {
  Number number;
  std::size_t used = 0;
  for (; used < text.size() && text[used] >= '0' && text[used] <= '9' && used <= kMostDigits; ++used)
    if (used < kMostDigits) number.value = number.value * 10 + (text[used] - '0');
  if (used == 0 || used > kMostDigits) return {};
  text.remove_prefix(used);
  number.digits = used;
  return number;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

/// ".25" and ",25": milliseconds, what is finer is cut off. None when there is no digit.
std::optional<int> take_fraction(std::string_view& text) {
  int milli = 0;
  std::size_t used = 0;
  for (; used < text.size() && text[used] >= '0' && text[used] <= '9'; ++used)
    if (used < 3) milli = milli * 10 + (text[used] - '0');
  if (used == 0 || used > 18) return std::nullopt;
  for (std::size_t i = used; i < 3; ++i) milli *= 10;
  text.remove_prefix(used);
  return milli;
}

Failure bad_period(std::string_view text, std::string_view why) {
  return fail(ErrorKind::kInvalid, fmt::format("the period '{}' {}", text, why),
              "write it as for example PT1H, P1D or P1M");
}

struct Unit {
  char letter;
  std::int64_t Period::* field;  ///< null: of `time`
  std::int64_t size;             ///< in the field, or in milliseconds
};
constexpr std::array<Unit, 4> kDateUnits = {{{'Y', &Period::months, 12},
                                             {'M', &Period::months, 1},
                                             {'W', &Period::days, 7},
                                             {'D', &Period::days, 1}}};
constexpr std::array<Unit, 3> kTimeUnits = {
    {{'H', nullptr, 3'600'000}, {'M', nullptr, 60'000}, {'S', nullptr, 1000}}};

/// Reads "1Y2M" or "3H4M5.5S" as far as it goes; false when it is wrong.
template <std::size_t N>
bool take_units(std::string_view& text, const std::array<Unit, N>& units, Period& period) {
  std::size_t next = 0;
  while (!text.empty() && text.front() != 'T') {
    const auto number = take_number(text);
    if (number.digits == 0 || number.value > kMostTime.count()) return false;
    std::optional<int> fraction;
    if (!text.empty() && (text.front() == '.' || text.front() == ',')) {
      text.remove_prefix(1);
      fraction = take_fraction(text);
      if (!fraction) return false;
    }
    while (next < N && (text.empty() || units[next].letter != text.front())) ++next;
    if (next == N) return false;
    const auto& unit = units[next++];
    if (fraction && unit.letter != 'S') return false;
    text.remove_prefix(1);
    if (number.value > kMostTime.count() / unit.size) return false;
    if (unit.field != nullptr)
      period.*unit.field += number.value * unit.size;
    else
      period.time += milliseconds(number.value * unit.size + fraction.value_or(0));
  }
  return true;
}

}  // namespace

Result<Period> parse_period(std::string_view text) {
  Period period;
  auto rest = text;
  if (!take(rest, 'P') || rest.empty()) return bad_period(text, "cannot be read");
  if (!take_units(rest, kDateUnits, period)) return bad_period(text, "cannot be read");
  if (take(rest, 'T') && (rest.empty() || !take_units(rest, kTimeUnits, period) || !rest.empty()))
    return bad_period(text, "cannot be read");
  if (period.months > kMostMonths || period.days > kMostDays || period.time > kMostTime)
    return bad_period(text, "is longer than ten thousand years");
  if (period == Period{}) return bad_period(text, "is zero: it would never get on");
  if (period.months == 0 && period.days == 0 && period.time < seconds(1))
    return bad_period(text, "is shorter than a second");
  return period;
}

std::string to_string(const Period& period) {
  std::string text = "P";
  const auto add = [&](std::int64_t value, char letter) {
    if (value != 0) text += fmt::format("{}{}", value, letter);
  };
  add(period.months / 12, 'Y');
  add(period.months % 12, 'M');
  add(period.days, 'D');
  if (period.time.count() == 0) return text;
  text += 'T';
  const auto ms = period.time.count();
  add(ms / 3'600'000, 'H');
  add(ms / 60'000 % 60, 'M');
  if (ms % 1000 != 0)
    text += fmt::format("{}.{:03}S", ms / 1000 % 60, ms % 1000);
  else
    add(ms / 1000 % 60, 'S');
  return text;
}

namespace {

struct Start {
  WallTime wall;
  std::optional<seconds> offset;
};

/// Two digits no greater than `most`.
std::optional<int> take_two(std::string_view& text, int most) {
  if (text.size() < 2 || text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9')
    return std::nullopt;
  const int value = (text[0] - '0') * 10 + (text[1] - '0');
  text.remove_prefix(2);
  return value <= most ? std::optional(value) : std::nullopt;
}

/// "T23:00:00.000", or its first parts. Nothing at all is midnight.
std::optional<milliseconds> take_time_of_day(std::string_view& text) {
  if (!take(text, 'T')) return milliseconds(0);
  auto part = take_two(text, 23);
  if (!part) return std::nullopt;
  milliseconds time = std::chrono::hours(*part);
  if (!take(text, ':')) return time;
  if (!(part = take_two(text, 59))) return std::nullopt;
  time += std::chrono::minutes(*part);
  if (!take(text, ':')) return time;
  if (!(part = take_two(text, 59))) return std::nullopt;
  time += seconds(*part);
  if (!take(text, '.') && !take(text, ',')) return time;
  if (!(part = take_fraction(text))) return std::nullopt;
  return time + milliseconds(*part);
}

/// What Joda's parser of dates and times takes, but for weeks and days of the year.
std::optional<Start> parse_start(std::string_view text) {
  const auto year = take_number(text);
  if (year.digits != 4) return std::nullopt;
  int month = 1, day = 1;
  if (take(text, '-')) {
    const auto part = take_two(text, 12);
    if (!part) return std::nullopt;
    month = *part;
    if (take(text, '-')) {
      const auto last = take_two(text, 31);
      if (!last) return std::nullopt;
      day = *last;
    }
  }
  const auto date = std::chrono::year(static_cast<int>(year.value)) / month / day;
  const auto time = take_time_of_day(text);
  if (!date.ok() || !time) return std::nullopt;
  Start start{WallTime(std::chrono::sys_days(date).time_since_epoch() + *time), std::nullopt};
  if (text.empty()) return start;
  if (text == "Z") {
    start.offset = seconds(0);
  } else if (const auto offset = parse_offset(text)) {
    start.offset = *offset;
  } else {
    return std::nullopt;
  }
  return start;
}

/// As Joda prints it: with milliseconds, and "Z" or the offset.
std::string format_in(TimePoint time, const TimeZone& zone) {
  const auto offset = zone.offset_at(time);
  auto text = format_time(time + offset);
  if (offset.count() == 0) return text;
  text.pop_back();
  const auto minutes = std::abs(offset.count()) / 60;
  return text + fmt::format("{}{:02}:{:02}", offset.count() < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

std::string shown(std::string_view text) {
  return text.size() <= kLongestShown ? std::string(text) : std::string(text.substr(0, kLongestShown)) + "…";
}

Failure cannot_parse(std::string_view text, const Error& why) {
  auto error = context(why, fmt::format("Cannot parse schedule '{}'", shown(text)));
  error.kind = why.kind == ErrorKind::kUnsupported ? why.kind : ErrorKind::kInvalid;
  return Failure(std::move(error));
}

Failure cannot_parse(std::string_view text, std::string why) {
  return cannot_parse(text,
                      Error{ErrorKind::kInvalid, std::move(why),
                            "write it as for example R/2030-01-31T02:30:00Z/P1D, or 30 2 * * mon-fri", ""});
}

}  // namespace

Result<Repetition> Repetition::parse(std::string_view text, const std::string& zone, TimePoint now) {
  Repetition repetition;
  const auto found = zone.empty() ? Result<TimeZone>() : find_time_zone(zone);
  if (!found) return cannot_parse(text, found.error());
  repetition.zone_ = *found;
  if (Cron::is_meant(text)) {
    auto cron = Cron::parse(text);
    if (!cron) return cannot_parse(text, cron.error());
    repetition.cron_ = *cron;
    repetition.text_ = text;
    repetition.start_at_ = now;
    return repetition;
  }
  const auto first = text.find('/');
  const auto last = text.rfind('/');
  if (first == text.npos || first == last || text.front() != 'R')
    return cannot_parse(text, "it does not read R[n]/[start]/period");
  auto runs = text.substr(1, first - 1);
  if (!runs.empty()) {
    const auto number = take_number(runs);
    if (number.digits == 0 || !runs.empty() || number.value > kMostCount)
      return cannot_parse(text, "what follows R is how many runs there are, or nothing");
    repetition.count_ = number.value;
  }
  repetition.text_ = text.substr(last + 1);
  const auto period = parse_period(shown(repetition.text_));
  if (!period) return cannot_parse(text, period.error());
  repetition.period_ = *period;
  const auto written = text.substr(first + 1, last - first - 1);
  if (written.empty()) {
    repetition.start_at_ = now - seconds(1);
    repetition.start_ = repetition.zone_.to_wall(repetition.start_at_);
  } else {
    const auto start = parse_start(written);
    if (!start) return cannot_parse(text, fmt::format("'{}' is not a date and time", shown(written)));
    if (zone.empty() && start->offset) repetition.zone_ = TimeZone::fixed(*start->offset);
    repetition.start_ = start->wall;
    repetition.start_at_ = repetition.zone_.from_wall(start->wall);
  }
  if (repetition.start_ < WallTime())
    return fail(ErrorKind::kInvalid, fmt::format("Scheduled start date '{}' is before 1970!", written));
  return repetition;
}

std::optional<TimePoint> Repetition::unlimited_at(std::int64_t index) const {
  if (index == 0) return start_at_;
  const auto beyond = [&](std::int64_t size, std::int64_t most) { return size > 0 && index > most / size; };
  if (index < 0 || beyond(period_.months, kMostMonths) || beyond(period_.days, kMostDays) ||
      beyond(period_.time.count(), kMostTime.count()))
    return std::nullopt;
  auto time = start_at_;
  if (period_.months > 0 || period_.days > 0) {
    const auto midnight = floor<days>(start_);
    std::chrono::year_month_day date(midnight);
    date += std::chrono::months(period_.months * index);
    if (!date.ok()) date = date.year() / date.month() / std::chrono::last;
    const auto day = std::chrono::local_days(date) + days(period_.days * index);
    time = zone_.from_wall(day + (start_ - midnight));
  }
  time += period_.time * index;
  return time <= kLastTime ? std::optional(time) : std::nullopt;
}

std::optional<TimePoint> Repetition::at(std::int64_t index) const {
  if (cron_ || (count_ && index >= *count_)) return std::nullopt;
  return unlimited_at(index);
}

std::optional<Occurrence> Repetition::first_not_before(TimePoint time) const {
  if (cron_) {
    const auto next = cron_->first_not_before(std::max(time, start_at_), zone_);
    return next ? std::optional(Occurrence{0, *next}) : std::nullopt;
  }
  // Those that do not exist lie after all others.
  std::int64_t low = 0, high = count_.value_or(kMostCount);
  while (low < high) {
    const auto middle = low + (high - low) / 2;
    const auto found = unlimited_at(middle);
    if (found && *found < time)
      low = middle + 1;
    else
      high = middle;
  }
  const auto found = at(low);
  return found ? std::optional(Occurrence{low, *found}) : std::nullopt;
}

std::optional<Occurrence> Repetition::first_after(TimePoint time) const {
  if (time >= kLastTime) return std::nullopt;
  return first_not_before(time + milliseconds(1));
}

Upcoming Repetition::upcoming(TimePoint time) const {
  const auto next = first_not_before(time);
  return next ? Upcoming{next->index, next->at} : Upcoming{count_.value_or(0), std::nullopt};
}

Due Repetition::due(const Occurrence& first, TimePoint in_time, TimePoint now, std::int64_t most) const {
  return cron_ ? due_of_cron(first.at, in_time, now, most) : due_of_interval(first, in_time, now, most);
}

Due Repetition::due_of_cron(TimePoint first, TimePoint in_time, TimePoint now, std::int64_t most) const {
  const auto end = now + milliseconds(1);
  constexpr auto kAll = std::numeric_limits<std::int64_t>::max();
  const auto late = cron_->pass(first, std::min(in_time, end), kAll, zone_);
  const auto rest = cron_->pass(late.end, end, kAll, zone_).count;
  const auto early = cron_->pass(late.end, end, std::max<std::int64_t>(0, rest - most), zone_);
  Due due;
  due.left_out = late.count + early.count;
  due.last_left_out = early.count > 0 ? early.last : late.last;
  auto next = cron_->first_not_before(early.end, zone_);
  for (; next && *next <= now; next = cron_->first_not_before(*next + milliseconds(1), zone_))
    due.times.push_back(*next);
  due.next.at = next;
  return due;
}

Due Repetition::due_of_interval(const Occurrence& first, TimePoint in_time, TimePoint now,
                                std::int64_t most) const {
  const auto next = first_after(now);
  const auto end = next ? next->index : count_.value_or(first.index);
  const auto early = first_not_before(in_time);
  auto index = std::max(first.index, early ? std::min(early->index, end) : end);
  index = std::max(index, end - most);
  Due due;
  due.left_out = index - first.index;
  if (due.left_out > 0) due.last_left_out = at(index - 1).value_or(first.at);
  for (; index < end; ++index)
    if (const auto time = at(index); time && (due.times.empty() || *time != due.times.back()))
      due.times.push_back(*time);
  due.next = {end, next ? std::optional(next->at) : std::nullopt};
  return due;
}

std::string Repetition::text_from(std::int64_t index) const {
  if (cron_) return text_;
  const auto next = at(index);
  if (!next) {
    const auto latest = count_ && *count_ > 0 ? unlimited_at(*count_ - 1) : std::nullopt;
    return fmt::format("R0/{}/{}", format_in(latest.value_or(start_at_), zone_), text_);
  }
  const auto left = count_ ? std::to_string(*count_ - index) : std::string();
  return fmt::format("R{}/{}/{}", left, format_in(*next, zone_), text_);
}

}  // namespace drover::workload

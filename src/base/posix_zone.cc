#include "base/posix_zone.h"

namespace drover {
namespace {

using std::chrono::days;
using std::chrono::seconds;
using Change = PosixZone::Change;

class Text {
 public:
  explicit Text(std::string_view text) : rest_(text) {}
  bool empty() const { return rest_.empty(); }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::optional<int> number(int min, int max) {
    std::size_t used = 0;
    int value = 0;
    while (used < rest_.size() && used < 4 && rest_[used] >= '0' && rest_[used] <= '9')
      value = value * 10 + (rest_[used++] - '0');
    if (used == 0 || value < min || value > max) return std::nullopt;
    rest_.remove_prefix(used);
    return value;
  }
  /// [+-]hh[:mm[:ss]]
  std::optional<seconds> time(int max_hours) {
    const bool negative = take('-');
    if (!negative) take('+');
    const auto hours = number(0, max_hours);
    if (!hours) return std::nullopt;
    int total = *hours * 3600;
    for (const int unit : {60, 1}) {
      if (!take(':')) break;
      const auto part = number(0, 59);
      if (!part) return std::nullopt;
      total += *part * unit;
    }
    return seconds(negative ? -total : total);
  }
  /// CET or <+01>: it is not needed, only skipped.
  bool name() {
    if (take('<')) {
      const auto end = rest_.find('>');
      if (end == rest_.npos) return false;
      rest_.remove_prefix(end + 1);
      return true;
    }
    std::size_t used = 0;
    while (used < rest_.size() &&
           ((rest_[used] >= 'a' && rest_[used] <= 'z') || (rest_[used] >= 'A' && rest_[used] <= 'Z')))
      ++used;
    rest_.remove_prefix(used);
    return used >= 3;
  }

 private:
  std::string_view rest_;
};

/// ",M3.5.0/2", ",J60" or ",59".
std::optional<Change> read_change(Text& text) {
  if (!text.take(',')) return std::nullopt;
  Change change;
  if (text.take('M')) {
    const auto month = text.number(1, 12);
    if (!month || !text.take('.')) return std::nullopt;
    const auto week = text.number(1, 5);
    if (!week || !text.take('.')) return std::nullopt;
    const auto weekday = text.number(0, 6);
    if (!weekday) return std::nullopt;
    change.month = *month, change.week = *week, change.weekday = *weekday;
  } else {
    const bool julian = text.take('J');
    const auto day = text.number(julian ? 1 : 0, 365);
    if (!day) return std::nullopt;
    change.kind = julian ? Change::Kind::kJulianDay : Change::Kind::kYearDay;
    change.day = *day;
  }
  if (!text.take('/')) return change;
  const auto time = text.time(167);
  if (!time) return std::nullopt;
  change.time = *time;
  return change;
}

/// When it happens in this year, by the clock that is right before it.
seconds wall_of(const Change& change, std::chrono::year year) {
  using namespace std::chrono;
  sys_days day = year / January / 1;
  if (change.kind == Change::Kind::kWeekday) {
    const auto month = year / static_cast<unsigned>(change.month);
    const weekday on(static_cast<unsigned>(change.weekday));
    day = change.week == 5 ? sys_days(month / on[last])
                           : sys_days(month / on[static_cast<unsigned>(change.week)]);
  } else if (change.kind == Change::Kind::kYearDay) {
    day += days(change.day);
  } else {
    day += days(change.day - 1 + (year.is_leap() && change.day >= 60 ? 1 : 0));
  }
  return day.time_since_epoch() + change.time;
}

}  // namespace

seconds PosixZone::offset_at(std::int64_t second) const {
  if (!daylight) return standard;
  const std::chrono::sys_seconds local(seconds(second) + standard);
  const auto year = std::chrono::year_month_day(std::chrono::floor<days>(local)).year();
  const auto start = (wall_of(daylight->start, year) - standard).count();
  const auto end = (wall_of(daylight->end, year) - daylight->offset).count();
  const bool saving = start < end ? second >= start && second < end : second >= start || second < end;
  return saving ? daylight->offset : standard;
}

std::optional<PosixZone> parse_posix_zone(std::string_view input) {
  Text text(input);
  PosixZone zone;
  if (!text.name()) return std::nullopt;
  const auto west = text.time(24);  // POSIX counts to the west
  if (!west) return std::nullopt;
  zone.standard = -*west;
  if (text.empty()) return zone;
  PosixZone::Daylight daylight;
  if (!text.name()) return std::nullopt;
  daylight.offset = zone.standard + std::chrono::hours(1);
  if (const auto other = text.time(24)) daylight.offset = -*other;
  const auto start = read_change(text);
  const auto end = start ? read_change(text) : std::nullopt;
  if (!end || !text.empty()) return std::nullopt;
  daylight.start = *start, daylight.end = *end;
  zone.daylight = daylight;
  return zone;
}

}  // namespace drover

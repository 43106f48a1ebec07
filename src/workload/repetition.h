#pragma once

// When something is to happen again and again: as cron has it (workload/cron.h), or ISO 8601 repeating
// intervals as Chronos reads them, "R[n]/[start]/period" (wire: Iso8601Expressions of Chronos). Pure; a
// value; thread safe.
//
// Of an interval, occurrence k is the start and k periods, counted from the start: the 31st of January and
// P1M give 28 February and then 31 March. Years, months, weeks and days move the clock on the wall of the
// time zone; hours, minutes and seconds are exact and added after. A time that the clock skips in spring is
// later by what is skipped; one that it shows twice in autumn is the first of the two.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time_zone.h"
#include "base/units.h"
#include "workload/cron.h"

namespace drover::workload {

/// At least a second in all.
struct Period {
  std::int64_t months = 0;  ///< years are 12
  std::int64_t days = 0;    ///< weeks are 7
  std::chrono::milliseconds time{0};

  bool operator==(const Period&) const = default;
};

/// "P1Y2M3W4DT5H6M7.5S": whole numbers, in this order, each at most once; seconds may have a fraction.
Result<Period> parse_period(std::string_view text);
/// The same in its shortest form: "P1Y", "PT36H", "P1DT0.500S".
std::string to_string(const Period& period);

struct Occurrence {
  std::int64_t index = 0;  ///< 0 is the start; of cron, always
  TimePoint at;

  bool operator==(const Occurrence&) const = default;
};

/// Where somebody stands who goes from one occurrence to the next.
struct Upcoming {
  std::int64_t index = 0;       ///< so many were before, of an interval
  std::optional<TimePoint> at;  ///< none when no further one comes
};

/// What came due meanwhile.
struct Due {
  std::int64_t left_out = 0;     ///< too late, or too many
  TimePoint last_left_out{};     ///< when there were some
  std::vector<TimePoint> times;  ///< the others, in order, each time once
  Upcoming next;
};

class Repetition {
 public:
  /// `zone` is the name of a time zone or "". With one, the start is what its clock shows, whatever offset is
  /// written behind it; without, the start keeps its offset, UTC when it has none. No start means `now` less
  /// a second: it is due at once. Cron goes by the clock of the zone, or UTC, and has no occurrence before
  /// `now`. Errors are kInvalid, and their message begins "Cannot parse schedule '…'", or is that of Chronos
  /// for a start before 1970.
  static Result<Repetition> parse(std::string_view text, const std::string& zone, TimePoint now);

  bool is_cron() const { return cron_.has_value(); }
  /// How many occurrences there are: "R3" has three, "R0" none, "R" and cron have no end (or: the end of the
  /// year 9999).
  std::optional<std::int64_t> count() const { return count_; }
  const Period& period() const { return period_; }
  const TimeZone& zone() const { return zone_; }

  /// Of an interval. None when there are not so many, or it were after the year 9999. Never before the one of
  /// a smaller index; two are at the same time where a zone left out a whole day.
  std::optional<TimePoint> at(std::int64_t index) const;
  /// The first occurrence after this time. Takes the same short time however many lie before.
  std::optional<Occurrence> first_after(TimePoint time) const;
  std::optional<Occurrence> first_not_before(TimePoint time) const;
  Upcoming upcoming(TimePoint time) const;

  /// What came due from this occurrence on until `now`: the last ones, no more than `most` and none before
  /// `in_time`, and how many are left out. Takes a short time however many they are.
  Due due(const Occurrence& first, TimePoint in_time, TimePoint now, std::int64_t most) const;

  /// Cron as it was written. Else as Chronos shows what is left from this occurrence on:
  /// "R2/2018-03-06T23:00:00.000Z/PT24H". When nothing is left it says "R0/" and the last occurrence. parse()
  /// of it with the same zone name gives the same occurrences, except where a month's end moved the day.
  std::string text_from(std::int64_t index) const;

 private:
  std::optional<TimePoint> unlimited_at(std::int64_t index) const;
  Due due_of_cron(TimePoint first, TimePoint in_time, TimePoint now, std::int64_t most) const;
  Due due_of_interval(const Occurrence& first, TimePoint in_time, TimePoint now, std::int64_t most) const;

  std::optional<std::int64_t> count_;
  WallTime start_;
  TimePoint start_at_;  ///< where a start names its offset it is exact
  Period period_;
  std::string text_;  ///< as it was written: the period, or cron
  TimeZone zone_;
  std::optional<Cron> cron_;
};

}  // namespace drover::workload

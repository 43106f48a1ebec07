#pragma once

// When something is to happen again and again, as crontab(5) writes it: "30 2 * * mon-fri", "@daily". Pure; a
// value; thread safe.
//
// The clock on the wall of a time zone decides, as in Vixie's cron. Where the field of hours begins with "*",
// every instant at which the clock shows such a time is meant: both of a time that it shows twice in autumn,
// none of one that it skips in spring. Where hours are named, a time that is shown twice is the first of the
// two, and one that is skipped is later by what is skipped: what runs at 02:30 runs once every day.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/time_zone.h"
#include "base/units.h"

namespace drover::workload {

/// The end of the year 9999, which is as far as times can be written.
inline constexpr TimePoint kLastTime =
    std::chrono::sys_days(std::chrono::year(10000) / 1 / 1) - std::chrono::milliseconds(1);

class Cron {
 public:
  /// Minute, hour, day of the month, month and day of the week, or one of the names that begin with "@". What
  /// never comes true is refused. Errors are kInvalid and name the field.
  static Result<Cron> parse(std::string_view text);
  /// Whether a text is meant for parse(), as far as can be seen: also one with a mistake in it.
  static bool is_meant(std::string_view text);

  /// None after the year 9999.
  std::optional<TimePoint> first_not_before(TimePoint time, const TimeZone& zone) const;

  struct Passed {
    std::int64_t count = 0;
    TimePoint last{};  ///< of those that were counted
    TimePoint end{};   ///< before it they all are, and not before it is the next
  };
  /// Counts from `from` on, `most` at most, and none at `until` or later. Whole hours and days are taken at
  /// once: a year takes less than a millisecond.
  Passed pass(TimePoint from, TimePoint until, std::int64_t most, const TimeZone& zone) const;

 private:
  using Set = std::uint64_t;  ///< bit n: the number n is in it

  bool is_on(std::chrono::local_days date) const;
  bool ever_comes() const;
  WallTime next_wall(WallTime from) const;
  std::optional<Passed> whole(TimePoint first, std::chrono::minutes unit, const TimeZone& zone) const;

  Set minutes_ = 0, hours_ = 0, days_ = 0, months_ = 0, weekdays_ = 0;
  bool every_hour_ = false;  ///< the field of hours begins with "*"
  bool either_day_ = false;  ///< both fields of days are restricted: one of them is enough
};

}  // namespace drover::workload

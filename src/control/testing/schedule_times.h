#pragma once

// The times of the schedules that a simulation plays, reckoned by hand: what Repetition says must be the
// same.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"

namespace drover::control::testing {

using namespace std::chrono_literals;

/// Whether the clocks of central Europe show summer time: between the last Sundays of March and October, 1:00
/// UTC.
inline bool is_summer(TimePoint time) {
  using namespace std::chrono;
  const year_month_day day(floor<days>(time));
  const auto begin = sys_days(day.year() / March / Sunday[last]) + 1h;
  const auto end = sys_days(day.year() / October / Sunday[last]) + 1h;
  return begin <= time && time < end;
}

struct ScheduleTimes {
  enum class Kind {
    kExact,    ///< start + k periods
    kNightly,  ///< each day at the start's time of day, by the clocks of Berlin
    kMonthly,  ///< on the start's day of each month, or its last one, UTC
  };
  Kind kind = Kind::kExact;
  TimePoint start{};  ///< of a nightly one: what the clock shows, as if it were UTC
  std::chrono::milliseconds period{};
  std::optional<std::int64_t> count;

  TimePoint at(std::int64_t k) const {
    using namespace std::chrono;
    switch (kind) {
      case Kind::kExact:
        return start + k * period;
      case Kind::kNightly: {
        const auto wall = start + k * 24h;
        // What the clock shows twice is the first of the two; what it leaves out is an hour later.
        return is_summer(wall - 2h) ? wall - 2h : wall - 1h;
      }
      case Kind::kMonthly: {
        const auto midnight = floor<days>(start);
        const year_month_day first(midnight);
        const auto month = year_month(first.year(), first.month()) + months(static_cast<int>(k));
        const auto last = year_month_day_last(month.year(), month_day_last(month.month())).day();
        return sys_days(month / std::min(first.day(), last)) + (start - midnight);
      }
    }
    return start;
  }
  bool has(std::int64_t k) const { return k >= 0 && (!count || k < *count); }
  /// The first that is not before this time; none when there is none.
  std::optional<std::int64_t> first_from(TimePoint time) const {
    std::int64_t guess = 0;
    if (time > start) {
      const auto length = kind == Kind::kExact ? period : kind == Kind::kNightly ? 24h : 31 * 24h;
      guess = std::max<std::int64_t>(0, (time - start) / length - 2);
    }
    while (at(guess) < time) ++guess;
    return has(guess) ? std::optional(guess) : std::nullopt;
  }
  std::optional<TimePoint> next_from(TimePoint time) const {
    const auto k = first_from(time);
    return k ? std::optional(at(*k)) : std::nullopt;
  }

  std::string text() const {
    const auto repetition = "R" + (count ? std::to_string(*count) : "") + "/";
    const auto from = format_time(start);
    switch (kind) {
      case Kind::kExact:
        return repetition + from + "/PT" + std::to_string(period / 1s) + "S";
      case Kind::kNightly:
        return repetition + from + "/P1D";
      case Kind::kMonthly:
        return repetition + from + "/P1M";
    }
    return repetition;
  }
  std::string zone() const { return kind == Kind::kNightly ? "Europe/Berlin" : ""; }
};

}  // namespace drover::control::testing

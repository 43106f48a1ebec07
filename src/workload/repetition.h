#pragma once

// When something is to happen again and again: ISO 8601 repeating intervals as Chronos reads them,
// "R[n]/[start]/period" (wire: Iso8601Expressions of Chronos). Pure; a value; thread safe.
//
// Occurrence k is the start and k periods, counted from the start: the 31st of January and P1M give 28
// February and then 31 March. Years, months, weeks and days move the clock on the wall of the time zone;
// hours, minutes and seconds are exact and added after. A time that the clock skips in spring is later by
// what is skipped; one that it shows twice in autumn is the first of the two.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time_zone.h"
#include "base/units.h"

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
  std::int64_t index = 0;  ///< 0 is the start
  TimePoint at;

  bool operator==(const Occurrence&) const = default;
};

class Repetition {
 public:
  /// `zone` is the name of a time zone or "". With one, the start is what its clock shows, whatever offset is
  /// written behind it; without, the start keeps its offset, UTC when it has none. No start means `now` less
  /// a second: it is due at once. Errors are kInvalid, and their message begins "Cannot parse schedule '…'",
  /// or is that of Chronos for a start before 1970.
  static Result<Repetition> parse(std::string_view text, const std::string& zone, TimePoint now);

  /// How many occurrences there are: "R3" has three, "R0" none, "R" has no end (or: the end of the year
  /// 9999).
  std::optional<std::int64_t> count() const { return count_; }
  const Period& period() const { return period_; }
  const TimeZone& zone() const { return zone_; }

  /// None when there are not so many, or it were after the year 9999. Never before the one of a smaller
  /// index; two are at the same time where a zone left out a whole day.
  std::optional<TimePoint> at(std::int64_t index) const;
  /// The first occurrence after this time. Takes the same short time however many lie before.
  std::optional<Occurrence> first_after(TimePoint time) const;
  std::optional<Occurrence> first_not_before(TimePoint time) const;

  /// As Chronos shows what is left from this occurrence on: "R2/2018-03-06T23:00:00.000Z/PT24H". When nothing
  /// is left it says "R0/" and the last occurrence. parse() of it with the same zone name gives the same
  /// occurrences, except where a month's end moved the day.
  std::string text_from(std::int64_t index) const;

 private:
  std::optional<TimePoint> unlimited_at(std::int64_t index) const;

  std::optional<std::int64_t> count_;
  WallTime start_;
  TimePoint start_at_;  ///< where a start names its offset it is exact
  Period period_;
  std::string period_text_;  ///< as it was written
  TimeZone zone_;
};

}  // namespace drover::workload

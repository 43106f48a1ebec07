#pragma once

// The rule that a file of the time zone database ends with, for the time after its last transition:
// "CET-1CEST,M3.5.0,M10.5.0/3" (POSIX.1, the variable TZ, with the wider times of RFC 8536). Pure.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace drover {

struct PosixZone {
  /// A day of every year, and a time on it.
  struct Change {
    enum class Kind {
      kWeekday,    ///< the week-th weekday of the month; the fifth is the last
      kYearDay,    ///< 0 … 365
      kJulianDay,  ///< 1 … 365: 29 February is never counted
    } kind = Kind::kWeekday;
    int month = 1, week = 1, weekday = 0, day = 0;
    std::chrono::seconds time{7200};  ///< after that day began; may be negative, or more than a day
  };

  std::chrono::seconds standard{0};  ///< local minus UTC
  struct Daylight {
    std::chrono::seconds offset{0};
    Change start, end;
  };
  std::optional<Daylight> daylight;

  /// Local time minus UTC at this second since 1970.
  std::chrono::seconds offset_at(std::int64_t second) const;
};

/// None when the text is damaged.
std::optional<PosixZone> parse_posix_zone(std::string_view text);

}  // namespace drover

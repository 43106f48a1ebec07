#pragma once

// Time zones of the IANA database, as the machine keeps it in /usr/share/zoneinfo (RFC 8536, with the rule
// for the time after the last listed transition). Nothing is downloaded. A TimeZone is a value that is cheap
// to copy; all of it is thread safe, and nothing throws.

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace drover {

/// What a clock on a wall shows, without saying where: counted as if it were UTC.
using WallTime = std::chrono::local_time<std::chrono::milliseconds>;

class TimeZone {
 public:
  /// UTC.
  TimeZone();
  /// A place without daylight saving, less than a day away from UTC: "+02:00".
  static TimeZone fixed(std::chrono::seconds offset);
  /// The bytes of a file of the database, version 2 or later.
  static Result<TimeZone> parse(std::string name, std::string_view bytes);

  const std::string& name() const;
  /// Local time minus UTC at this moment.
  std::chrono::seconds offset_at(std::chrono::sys_time<std::chrono::milliseconds> time) const;
  WallTime to_wall(std::chrono::sys_time<std::chrono::milliseconds> time) const;
  /// The moment when the clock shows this. What it shows twice (autumn) is the first of the two. What it
  /// skips (spring) is later by what is skipped: 02:30 is 03:30 then.
  std::chrono::sys_time<std::chrono::milliseconds> from_wall(WallTime wall) const;

  /// Zones with one name are the same.
  bool operator==(const TimeZone& other) const { return name() == other.name(); }

 private:
  struct Data;
  explicit TimeZone(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

/// "Europe/Berlin", "UTC", "+02:00", "GMT+2", and the short names that Java knows ("PST"). An unknown name is
/// an error that tells the nearest one. What was read once is kept as long as the program runs.
Result<TimeZone> find_time_zone(const std::string& name);

/// "+02:00", "-0330", "+2": less than 24 hours.
Result<std::chrono::seconds> parse_offset(std::string_view text);

}  // namespace drover

#pragma once

// Moments as people write them. They mean the clock and the time zone of this machine.

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace drover::cli {

/// "2026-11-23", "2026-11-23 10:00", "2026-11-23T10:00:30", with a Z behind it in UTC; "18:00" and "noon",
/// "midnight" of today; "now", "today", "tomorrow".
Result<TimePoint> parse_moment(std::string_view text, TimePoint now);

/// So long ago ("2h"), or a moment.
Result<TimePoint> parse_since(std::string_view text, TimePoint now);

/// In so long ("2h", "now+2h"), or a moment; a time of the day that is over is tomorrow's.
Result<TimePoint> parse_begin(std::string_view text, TimePoint now);

}  // namespace drover::cli

#pragma once

// Times as clients write them. Pure.

#include <optional>
#include <string_view>

#include "base/units.h"

namespace drover {

/// "2018-03-05T23:00:00.000Z", also with another number of digits behind the seconds or none, and with an
/// offset ("+01:00") for Z. Counts whole milliseconds. nullopt when it is no time; what parse_time() takes
/// is one.
std::optional<TimePoint> parse_instant(std::string_view text);

}  // namespace drover

#pragma once

// One moment by two clocks. A value.

#include "base/units.h"

namespace drover {

/// What is to happen after some time goes by `steady`, what is to happen at a date by `wall`.
struct Moment {
  TimePoint wall{};    ///< the system's: for what people see or ask for by date
  TimePoint steady{};  ///< a SteadyTimeline's: for durations

  Moment(TimePoint both) : wall(both), steady(both) {}
  Moment(TimePoint by_wall, TimePoint by_steady) : wall(by_wall), steady(by_steady) {}
};

}  // namespace drover

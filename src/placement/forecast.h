#pragma once

// What would become of work that came now, as whoever places it says. A value.

#include <string>
#include <vector>

#include "placement/decision.h"

namespace drover::placement {

struct Forecast {
  std::vector<Decision> decisions;  ///< by rank; empty when it would wait
  std::vector<std::string> ended;   ///< for it: ids of tasks; "" for each that is none of ours
  int place = 0;                    ///< among those that wait, 1 is the head; 0: it starts
  std::vector<std::string> reasons;
  std::vector<std::string> remedies;
};

}  // namespace drover::placement

#pragma once

// For tests: how many random steps the long properties make. `scripts/test` makes few; CONTRIBUTING.md says
// how to make a million.

#include <cstdlib>

namespace drover {

/// DROVER_PROPERTY_STEPS, or `usually`.
inline int property_steps(int usually) {
  const char* steps = std::getenv("DROVER_PROPERTY_STEPS");
  return steps == nullptr ? usually : std::atoi(steps);
}

}  // namespace drover

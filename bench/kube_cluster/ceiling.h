#pragma once

// What an API server can take: pods that wait are bound where it was decided before, with the fewest writes
// by which that can be done rightly, and nobody looks whether they fit. Blocks.

#include <string>

#include "kube/client/api.h"
#include "observer.h"

namespace drover::bench {

/// How pods get their GPUs.
enum class Ask { kLimits, kClaims, kLimitsByClaims };

struct Ceiling {
  std::string name_space;
  std::string scheduler;  ///< pods of this one
  Ask ask = Ask::kLimits;
  int gpus = 1;  ///< of each pod, at most, where that is decided before
  std::size_t writers = 64;
};
/// When the first write went out. All pods of the scheduler must wait, and their claims be made.
Result<WallTime> bind_all(kube::Api& api, const Ceiling& ceiling);

}  // namespace drover::bench

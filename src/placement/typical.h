#pragma once

// The mix of requests that are likely to come: given by whoever knows it, or learnt from those that came.
// Values.

#include <vector>

#include "placement/request.h"

namespace drover::placement {

/// A request and how often it comes, relative to the others of a mix.
struct TypicalRequest {
  Request request;
  double weight = 1;

  bool operator==(const TypicalRequest&) const = default;
};

/// Counts requests by the room that they need, and forgets: what came two thousand requests ago weighs a
/// third of what comes now. Keeps the heaviest few hundred. Deterministic.
class LearntMix {
 public:
  void add(const Request& request);
  /// At most so many, heaviest first.
  std::vector<TypicalRequest> heaviest(std::size_t most) const;

 private:
  std::vector<TypicalRequest> typical_;
  double next_weight_ = 1;  ///< grows, instead of all others shrinking
};

}  // namespace drover::placement

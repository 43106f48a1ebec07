#pragma once

// Jobs that ask for the same are of one shape: what is found out about one is known of all. Within one plan.

#include <cstddef>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "placement/schedule/load.h"

namespace drover::placement::schedule {

struct Shape {
  const Gang* gang = nullptr;  ///< of the first job of this shape; the job outlives the plan
  Demand demand;
  Load total{};  ///< of the demand
  // What was tried in this plan and failed; later tries fail too, for a plan only ever takes room.
  bool fits_lasting = true;
  bool fits_briefly = true;
  bool can_reserve = true;
  int failed_soon = -1;  ///< when so many jobs had been chosen to end
};

class Shapes {
 public:
  explicit Shapes(const Cluster& cluster) : cluster_(cluster) {}

  /// References stay valid.
  Shape& of(const Gang& gang);

 private:
  const Cluster& cluster_;
  std::deque<Shape> shapes_;
  std::unordered_multimap<std::size_t, Shape*> by_hash_;
};

}  // namespace drover::placement::schedule

#pragma once

// What jobs take of one node, as sums and differences: parts may be negative. Values; pure.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "placement/gang.h"
#include "placement/parts.h"

namespace drover::placement::schedule {

struct Footprint {
  struct Part {
    std::int64_t milli = 0;
    std::int64_t memory_bytes = 0;
  };
  std::map<std::string, Part> gpus;                       ///< by UUID
  std::map<std::pair<std::string, Instance>, int> parts;  ///< MIG instances, by the GPU's UUID
  std::map<std::vector<int>, std::int64_t> pinned;  ///< thousandths of a CPU, by what they are pinned to
  std::int64_t milli_cpus = 0;                      ///< pinned or not
  std::int64_t memory_bytes = 0;
};

/// Adds `sign` times the other.
void add(Footprint& sum, const Footprint& other, int sign = 1);
/// The larger of each part; what one of them lacks is 0 there.
Footprint highest(const Footprint& a, const Footprint& b);

/// By node. GPUs of a group count once.
std::map<std::string, Footprint> footprints(const Gang& gang, const std::vector<Decision>& decisions);

/// The positive parts as allocations, which take just that from a cluster.
std::vector<std::pair<Request, Decision>> as_allocations(const std::string& node, const Footprint& footprint);

}  // namespace drover::placement::schedule

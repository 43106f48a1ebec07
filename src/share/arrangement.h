#pragma once

// What the users of GPUs ask of the machine for those who share them: intervals of the time slicing of a GPU,
// and MPS. Values, and their text; pure.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/decode.h"

namespace drover::share {

/// How long the driver leaves a GPU to one process while others wait: the values of
/// `nvidia-smi compute-policy --set-timeslice`.
enum class Interval { kDefault, kShort, kMedium, kLong };

/// One MPS control daemon: whose GPUs it has, and what each of its clients gets of them.
struct MpsLimits {
  std::vector<std::string> gpus;                    ///< UUIDs
  std::optional<int> threads;                       ///< percent of the multiprocessors: 1 to 100
  std::map<std::string, std::uint64_t> memory_mib;  ///< by UUID; absent: no limit

  bool operator==(const MpsLimits&) const = default;
};

struct Arrangement {
  std::map<std::string, Interval> intervals;  ///< by UUID
  std::optional<MpsLimits> mps;

  bool empty() const { return intervals.empty() && !mps; }
  bool operator==(const Arrangement&) const = default;
};

nlohmann::json json_of(const Arrangement& arrangement);
/// Of an object that json_of() has made; mistakes are the decoder's.
Arrangement read_arrangement(Decoder& value);

}  // namespace drover::share

#pragma once

// Why each job that does not start waits, in words for the one whose job it is: about other people's jobs it
// says how many, never which.

#include <map>
#include <string>
#include <vector>

#include "placement/schedule.h"
#include "placement/schedule/limits.h"
#include "placement/schedule/room.h"
#include "placement/schedule/shapes.h"

namespace drover::placement::schedule {

enum class Cause {
  kLimit,       ///< of a queue, user or namespace
  kRoom,        ///< there is too little, or what there is is kept for others
  kEnding,      ///< it starts when what is ending has ended
  kPreempting,  ///< it starts when its victims have ended
};

struct Verdict {
  const Job* job = nullptr;
  const Shape* shape = nullptr;
  Cause cause{};
  Excess excess{};          ///< kLimit
  std::size_t victims = 0;  ///< kPreempting
  bool reserved = false;    ///< room is kept for it
  bool estimated = false;   ///< when it begins is a guess
};

/// `verdicts` in the order of the queue. The room gives up what it keeps.
std::map<std::string, Reasons> explain(const std::vector<Verdict>& verdicts, Room& room,
                                       const LimitLedger& limits, std::optional<TimePoint> reserved_at,
                                       TimePoint now);

}  // namespace drover::placement::schedule

#pragma once

// Which ended tasks go, with their sandboxes, when the disk has too little room, and which events when there
// are too many. Pure.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "control/state.h"

namespace drover::control {

/// So long people can read what a task left, however little room there is.
inline constexpr std::chrono::minutes kKeepForReading{10};

/// Ids of ended tasks that take up `wanted` bytes or, when there are not as many, all that may go: one after
/// the other the oldest of whoever then takes up most. `bytes` has what each task takes up; what is not
/// there is not known to take up anything, and stays. `steady` is now, by the clock that nobody sets.
std::vector<std::string> tasks_to_forget(const State& state,
                                         const std::map<std::string, std::uint64_t>& bytes,
                                         std::uint64_t wanted, TimePoint steady);

/// How many of his oldest events each owner loses so that `most` are left at most: those who have most lose
/// so many that none has more than another who loses some. Who loses none is not there. By owner.
std::map<std::int64_t, std::size_t> events_to_forget(const std::map<std::int64_t, std::size_t>& counts,
                                                     std::size_t most);

}  // namespace drover::control

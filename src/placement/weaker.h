#pragma once

// What people could ask for instead of what does not start now. Pure.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "placement/gang.h"

namespace drover::placement {

struct Weaker {
  std::string remedy;  ///< what to do to ask so: "ask for 3 GPUs"
  Gang gang;
};

/// Where the members of a gang would go, by rank, if it were asked for now; nothing when it would wait.
using StartOf = std::function<std::optional<std::vector<Decision>>(const Gang&)>;

/// At most `most` gangs that ask for less than `gang` in one respect, by as little as will do, and that start
/// now. Those come first that give up a preference rather than a resource. When there are none, one that asks
/// for less of several things at once. None for more than 16 members: that would take long.
std::vector<Weaker> weaker_that_start(const Cluster& cluster, const Gang& gang, const StartOf& start_of,
                                      std::size_t most);

}  // namespace drover::placement

#pragma once

// What people could ask for instead of what does not fit now. Pure.

#include <string>
#include <vector>

#include "placement/gang.h"

namespace drover::placement {

struct Weaker {
  std::string remedy;  ///< what to do to ask so: "ask for 3 GPUs"
  Gang gang;
};

/// Gangs that ask for less than `gang` in one respect, by as little as will do, and that fit now. Those come
/// first that give up a wish rather than a resource. None for more than 16 members: that would take long.
std::vector<Weaker> weaker_that_fit(Cluster& cluster, const Gang& gang);

}  // namespace drover::placement

#pragma once

// Drover's own placement as a policy: every pod goes through placement::Cluster, as in the daemon.

#include "simulation.h"

namespace drover::bench {

/// NodePolicy::kFragmentation, told the mix of the list, as FGD is.
std::unique_ptr<Policy> make_drover(const Trace&, const Arrivals&, std::uint64_t seed);
/// The same, which learns the mix from the pods that come.
std::unique_ptr<Policy> make_untold_drover(const Trace&, const Arrivals&, std::uint64_t seed);

}  // namespace drover::bench

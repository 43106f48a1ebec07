#pragma once

// Whom to wait for, where no time limit says who ends when. Waiting for a node costs what stands idle there
// meanwhile. How long it takes nobody knows; but most work is short and some goes on for ever, and so who has
// run for long is likely to go on for as long again. So a node that should be ready within the hour is
// carried through; where none should, little is kept idle, and the job waits for who has been in its way
// longest. Pure; deterministic.

#include <vector>

#include "placement/schedule.h"

namespace drover::placement::schedule {

/// The jobs in the order in which to count on their end: node by node, from where it costs least until enough
/// have ended for a member of the gang; on a node from the youngest. At last those whose end helps on no node
/// alone.
std::vector<const RunningJob*> cheapest_to_wait_for(const Cluster& world, const Gang& gang,
                                                    const std::vector<const RunningJob*>& running,
                                                    TimePoint now);

}  // namespace drover::placement::schedule

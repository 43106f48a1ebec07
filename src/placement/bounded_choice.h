#pragma once

// The best set out of more devices than tables can hold, by branch and bound. Internal to the choice of
// devices.

#include <optional>

#include "placement/device_conditions.h"

namespace drover::placement {

/// `conditions` are those of the criteria, and possible. Exact unless the search is given up after 10,000
/// steps: then the best of what was seen, and none when nothing was.
std::optional<DeviceMask> choose_by_search(const Wiring::Tables& wiring, const DeviceCriteria& criteria,
                                           const DeviceConditions& conditions);

}  // namespace drover::placement

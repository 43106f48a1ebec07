#pragma once

// The best set of up to 16 devices, from the tables of all subsets. Always exact. Internal to the choice of
// devices.

#include <optional>

#include "placement/device_conditions.h"

namespace drover::placement {

/// `conditions` are those of the criteria, and possible.
std::optional<DeviceMask> choose_by_tables(const Wiring::Tables& wiring, const DeviceCriteria& criteria,
                                           const DeviceConditions& conditions);

}  // namespace drover::placement

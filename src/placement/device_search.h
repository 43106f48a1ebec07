#pragma once

// Walks through the sets of devices that conditions allow, of twins only the lowest. Internal to the choice
// of devices.

#include "placement/device_conditions.h"
#include "placement/device_mask.h"

namespace drover::placement {

/// A Judge has `void consider(DeviceMask chosen)`, told every set that satisfies, and
/// `bool promising(DeviceMask chosen, DeviceMask rest, int missing)`: false skips all sets that add `missing`
/// of `rest` to `chosen`. Asked once for each `chosen`, after it was asked for `chosen` without its highest.
template <typename Judge>
class DeviceSearch {
 public:
  DeviceSearch(const DeviceConditions& conditions, const std::array<DeviceMask, kMaxDevices>& twins,
               Judge& judge)
      : conditions_(conditions), twins_(twins), judge_(judge) {}

  void run() { extend(0, conditions_.candidates, conditions_.count); }

 private:
  void extend(DeviceMask chosen, DeviceMask rest, int missing) {
    if (missing == 0) rest = 0;
    if (std::popcount(rest) < missing || !conditions_.quotas_hold(chosen | rest)) return;
    if (!judge_.promising(chosen, rest, missing)) return;
    if (missing == 0) return judge_.consider(chosen);
    while (std::popcount(rest) >= missing) {
      const auto device = static_cast<std::size_t>(lowest(rest));
      rest = without_lowest(rest);
      extend(chosen | DeviceMask{1} << device, rest & conditions_.compatible[device], missing - 1);
      rest &= ~twins_[device];
    }
  }

  const DeviceConditions& conditions_;
  const std::array<DeviceMask, kMaxDevices>& twins_;
  Judge& judge_;
};

}  // namespace drover::placement

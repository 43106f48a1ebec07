#include "placement/device_choice.h"

#include <algorithm>

#include "placement/bounded_choice.h"
#include "placement/device_conditions.h"
#include "placement/tabled_choice.h"

namespace drover::placement {

std::optional<DeviceMask> choose(const Wiring& wiring, const DeviceCriteria& criteria) {
  const auto& tables = wiring.tables();
  const DeviceConditions conditions(tables, criteria);
  if (conditions.count == 0) return DeviceMask{0};
  if (!conditions.possible()) return std::nullopt;
  return tables.subsets ? choose_by_tables(tables, criteria, conditions)
                        : choose_by_search(tables, criteria, conditions);
}

NumaMask numa_of(const Wiring& wiring, DeviceMask devices) {
  return wiring.tables().numa_of(devices);
}

bool near_enough(const gpu::Link& link, const Interconnect& minimum) {
  if (!minimum.asks() || link.nvlinks >= std::max(1, minimum.min_nvlinks)) return true;
  return minimum.max_pcie != gpu::PcieLevel::kUnknown && link.pcie <= minimum.max_pcie;
}

}  // namespace drover::placement

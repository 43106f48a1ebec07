#include "placement/device_conditions.h"

#include <algorithm>

#include "placement/device_mask.h"

namespace drover::placement {
namespace {

/// Claims that allow the same devices are one.
std::vector<DeviceQuota> merged(const std::vector<ClaimMask>& claims, DeviceMask free) {
  std::vector<DeviceQuota> merged;
  for (const auto& claim : claims) {
    const auto same = std::ranges::find(merged, claim.allowed & free, &DeviceQuota::allowed);
    if (same == merged.end())
      merged.push_back({claim.allowed & free, claim.count});
    else
      same->count += claim.count;
  }
  return merged;
}

/// Devices that are in one of the sets with this one.
DeviceMask sharing(const std::vector<DeviceMask>& sets, int device) {
  DeviceMask sharing = 0;
  for (const auto set : sets)
    if (contains(set, device)) sharing |= set;
  return sharing;
}

/// Hall's theorem: claims can be served, each device serving one, if and only if every set of claims finds as
/// many devices as it asks for among those that one of them allows. A quota that any set of `count`
/// candidates meets is left out.
std::vector<DeviceQuota> quotas_of(const std::vector<DeviceQuota>& claims, DeviceMask candidates, int count) {
  std::vector<DeviceQuota> quotas;
  for (std::size_t set = 1; set < std::size_t{1} << claims.size(); ++set) {
    DeviceQuota quota;
    for_each_device(set, [&](int claim) {
      quota.allowed |= claims[static_cast<std::size_t>(claim)].allowed;
      quota.count += claims[static_cast<std::size_t>(claim)].count;
    });
    if (quota.count > count - std::popcount(candidates & ~quota.allowed)) quotas.push_back(quota);
  }
  return quotas;
}

}  // namespace

DeviceConditions::DeviceConditions(const Wiring::Tables& wiring, const DeviceCriteria& criteria)
    : free(criteria.free & wiring.all()) {
  const auto claims = merged(criteria.claims, free);
  for (const auto& claim : claims) {
    count += claim.count;
    candidates |= claim.allowed;
  }
  for_each_device(candidates, [&](int a) { compatible[static_cast<std::size_t>(a)] = candidates; });
  if (criteria.minimum.asks() || !criteria.exclusive.empty() || !criteria.together.empty())
    find_compatible(wiring, criteria);
  quotas = quotas_of(claims, candidates, count);
}

void DeviceConditions::find_compatible(const Wiring::Tables& wiring, const DeviceCriteria& criteria) {
  for_each_device(candidates, [&](int a) {
    auto& others = compatible[static_cast<std::size_t>(a)];
    for (const auto set : criteria.exclusive)
      if (contains(set, a)) others &= ~set | bit(a);
    if (!criteria.together.empty()) others &= sharing(criteria.together, a);
    for_each_device(others & ~bit(a), [&](int b) {
      if (!near_enough(wiring.link(a, b), criteria.minimum)) others &= ~bit(b);
    });
  });
  for (DeviceMask before = 0; before != candidates;) {
    before = candidates;
    for_each_device(before, [&](int a) {
      auto& others = compatible[static_cast<std::size_t>(a)];
      others &= candidates;
      if (std::popcount(others) < count) candidates &= ~bit(a);
    });
  }
}

bool DeviceConditions::possible() const {
  return std::popcount(candidates) >= count && quotas_hold(candidates);
}

bool DeviceConditions::quotas_hold(DeviceMask devices) const {
  return std::ranges::all_of(quotas, [&](const DeviceQuota& quota) {
    return std::popcount(devices & quota.allowed) >= quota.count;
  });
}

std::array<DeviceMask, kMaxDevices> twins_of(const Wiring::Tables& wiring, const DeviceCriteria& criteria,
                                             DeviceMask candidates) {
  std::array<DeviceMask, kMaxDevices> twins{};
  for_each_device(candidates, [&](int device) {
    auto& same = twins[static_cast<std::size_t>(device)];
    same = wiring.twins[static_cast<std::size_t>(device)] & candidates;
    const auto keep_if_same = [&](DeviceMask set) { same &= contains(set, device) ? set : ~set; };
    for (const auto& claim : criteria.claims) keep_if_same(claim.allowed);
    for (const auto set : criteria.exclusive) keep_if_same(set);
    for (const auto set : criteria.together) keep_if_same(set);
    keep_if_same(criteria.preferred);
  });
  return twins;
}

}  // namespace drover::placement

#pragma once

// What a set must be to be chosen at all, in the form that the searches ask for. Internal to the choice of
// devices.

#include <array>
#include <vector>

#include "placement/device_choice.h"
#include "placement/wiring_tables.h"

namespace drover::placement {

/// At least `count` of the chosen are in `allowed`.
struct DeviceQuota {
  DeviceMask allowed = 0;
  int count = 0;
};

struct DeviceConditions {
  DeviceConditions(const Wiring::Tables& wiring, const DeviceCriteria& criteria);

  /// False says that no set at all satisfies.
  bool possible() const;
  /// Whether the claims could be served from these devices alone. For as many devices as are wanted, that is
  /// whether each serves one.
  bool quotas_hold(DeviceMask devices) const;

  int count = 0;              ///< of devices wanted
  DeviceMask free = 0;        ///< without bits that are no device
  DeviceMask candidates = 0;  ///< free, allowed by some claim, and compatible with enough others
  std::vector<DeviceQuota> quotas;
  /// [candidate]: the candidates with which it may be chosen; itself too
  std::array<DeviceMask, kMaxDevices> compatible{};

 private:
  void find_compatible(const Wiring::Tables& wiring, const DeviceCriteria& criteria);
};

/// [candidate]: the candidates that could trade places with it under these criteria: of equal sets, the one
/// that has the lower of two twins is better.
std::array<DeviceMask, kMaxDevices> twins_of(const Wiring::Tables& wiring, const DeviceCriteria& criteria,
                                             DeviceMask candidates);

}  // namespace drover::placement

#pragma once

// Sets of devices as bits.

#include <bit>

#include "placement/wiring.h"

namespace drover::placement {

/// An index that is never negative.
inline std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

inline DeviceMask bit(int device) {
  return DeviceMask{1} << device;
}

inline bool contains(DeviceMask set, int device) {
  return (set >> device & 1U) != 0;
}

inline int lowest(DeviceMask set) {
  return std::countr_zero(set);
}

inline DeviceMask without_lowest(DeviceMask set) {
  return set & (set - 1);
}

/// Calls visit(device) in ascending order.
template <typename Visit>
void for_each_device(DeviceMask set, const Visit& visit) {
  for (; set != 0; set = without_lowest(set)) visit(lowest(set));
}

/// Whether `a` has the lower indices: it holds the lowest device in which the two differ. A set has lower
/// indices than any of its subsets.
inline bool has_lower_indices(DeviceMask a, DeviceMask b) {
  const auto differ = a ^ b;
  return (a & differ & -differ) != 0;
}

}  // namespace drover::placement

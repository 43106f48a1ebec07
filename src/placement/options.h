#pragma once

// Sets of devices that a request could get on a node, and what policies compare of them. Pure but for a
// memory of earlier answers.

#include <cstdint>
#include <optional>
#include <vector>

#include "placement/feasibility.h"

namespace drover::placement {

/// A set of devices; sums are over all its pairs.
struct DeviceOption {
  DeviceMask devices = 0;
  std::int32_t nvlinks = 0;
  std::int32_t weakest = 0;  ///< NVLinks of the weakest pair; 0 of fewer than two devices
  std::int32_t nearness = 0;
  std::int32_t nvlinks_lost = 0;  ///< over all pairs of idle devices that are not both idle afterwards
};

/// Remembers the best set out of the same devices: nodes of one kind with the same devices free are alike. Of
/// what shares a place, the last stays. One memory serves one shape.
class OptionMemory {
 public:
  struct Key {
    int kind = -1;
    DeviceMask room = 0;
    DeviceMask idle = 0;
    bool operator==(const Key&) const = default;
  };
  struct Answer {
    std::optional<DeviceOption> option;
    std::optional<Obstacle> missing;  ///< set_obstacle(), when somebody asked
  };
  /// Null when it is not known. Valid until the next remember().
  Answer* find(const Key& key);
  void remember(const Key& key, const std::optional<DeviceOption>& option);

 private:
  struct Place {
    Key key;
    Answer answer;
  };
  static std::size_t place_of(const Key& key);

  std::vector<Place> places_;
};

/// How exact the comparison between nodes is. Preferred CPUs do not count there, only on the node itself: so
/// the answer is the same for requests that differ in nothing but CPUs and memory.
enum class Locality { kIgnorePreferredCpus, kAll };

/// The best set out of `room`; nothing when the conditions on sets are not met.
std::optional<DeviceOption> best_option(const NodeState& state, const Shape& shape, DeviceMask room,
                                        Locality locality, OptionMemory* memory);

/// set_obstacle(), remembered likewise.
std::optional<Obstacle> missing_condition(const NodeState& state, const Shape& shape, OptionMemory* memory);

/// Devices in `room` that have as much left as each other, fullest first: calls visit(devices) until it
/// returns true.
template <typename Visit>
void for_each_filling(const NodeState& state, DeviceMask room, bool fullest_first, const Visit& visit) {
  const auto left = [&](int i) {
    const auto& device = state.devices[static_cast<std::size_t>(i)];
    return std::pair(device.free_milli, device.free_memory);
  };
  while (room != 0) {
    auto extreme = left(std::countr_zero(room));
    DeviceMask same = 0;
    for (auto rest = room; rest != 0; rest &= rest - 1) {
      const auto now = left(std::countr_zero(rest));
      if (fullest_first ? now < extreme : now > extreme) {
        extreme = now;
        same = 0;
      }
      if (now == extreme) same |= rest & -rest;
    }
    if (visit(same)) return;
    room &= ~same;
  }
}

}  // namespace drover::placement

#include <array>
#include <bit>

#include "placement/cluster_impl.h"
#include "placement/device_mask.h"
#include "placement/options.h"
#include "placement/wiring_tables.h"

namespace drover::placement {
namespace {

constexpr int kMostSets = 4096;  ///< that are looked at

/// Whether one can stand in for the other in every set.
bool interchangeable(const NodeState& state, int a, int b) {
  const auto& kind = *state.kind;
  const auto at = [](int device) { return static_cast<std::size_t>(device); };
  return contains(kind.wiring.tables().twins[at(a)], b) && kind.devices[at(a)] == kind.devices[at(b)] &&
         state.devices[at(a)] == state.devices[at(b)] && contains(state.idle, a) == contains(state.idle, b);
}

/// Sets of so many devices; of those that are interchangeable, the lowest.
class Sets {
 public:
  Sets(const NodeState& state, DeviceMask room, int count) : room_(room), count_(count) {
    for_each_device(room, [&](int device) {
      for_each_device(room & first_devices(device), [&](int before) {
        if (interchangeable(state, before, device)) needs_[static_cast<std::size_t>(device)] = bit(before);
      });
    });
  }

  int tried() const { return tried_; }
  /// Calls visit(set) until it returns false; false, when there are more sets than are looked at.
  template <typename Visit>
  bool visit(const Visit& each) {
    return grow(0, room_, each);
  }

 private:
  template <typename Visit>
  bool grow(DeviceMask chosen, DeviceMask rest, const Visit& each) {
    if (std::popcount(chosen) == count_) return ++tried_ <= kMostSets && each(chosen);
    if (std::popcount(chosen) + std::popcount(rest) < count_) return true;
    for (; rest != 0; rest = without_lowest(rest)) {
      const auto device = lowest(rest);
      if ((needs_[static_cast<std::size_t>(device)] & ~chosen) != 0) continue;
      if (!grow(chosen | bit(device), without_lowest(rest), each)) return false;
    }
    return true;
  }

  DeviceMask room_;
  int count_;
  std::array<DeviceMask, kMaxDevices> needs_{};  ///< [device]: has to be in the set before
  int tried_ = 0;
};

}  // namespace

bool alike(const NodeEntry& a, const NodeEntry& b) {
  return a.state == b.state && a.node->attributes == b.node->attributes;
}

Cluster::Ways Cluster::Impl::ways_on(const std::string& node, const Request& request, std::size_t most) {
  Cluster::Ways ways;
  const auto best = try_place_on(node, request);
  if (!best || ledger.group(request.group) != nullptr || request.gpu_count() == 0 || !request.part.empty()) {
    if (best) ways.decisions.push_back(*best);
    ways.complete = request.part.empty();
    return ways;
  }
  const auto& entry = *find(node);
  const Shape shape(request, views.fits(request));
  const auto room = devices_with_room(entry.state, shape) & shape.on(*entry.kind).allowed;
  Sets sets(entry.state, room, shape.gpus());
  ways.complete = sets.visit([&](DeviceMask devices) {
    if (!best_option(entry.state, shape, devices, Locality::kAll, nullptr)) return true;
    if (ways.decisions.size() == most) return false;
    ways.decisions.push_back(decide(entry, shape, devices));
    if (ways.decisions.back().cpus.empty() || request.cpu_affinity != Preference::kPrefer) return true;
    if (ways.decisions.size() == most) return false;
    ways.decisions.push_back(ways.decisions.back());
    ways.decisions.back().cpus.clear();
    return true;
  });
  ways.tried = sets.tried();
  return ways;
}

}  // namespace drover::placement

#include "placement/policies.h"

#include <algorithm>
#include <bit>

namespace drover::placement {
namespace {

/// Fields of a score, most important first, packed from the top.
class Packer {
 public:
  Packer& add(std::int64_t value, int bits) {
    const auto most = (std::uint64_t{1} << bits) - 1;
    value_ = value_ << bits | std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0)), most);
    return *this;
  }
  /// Larger is better.
  Packer& add_less(std::int64_t value, int bits) {
    return add(((std::int64_t{1} << bits) - 1) - value, bits);
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

struct Interlinks {
  std::int64_t nvlinks = 0;
  std::int64_t weakest = 0;
  std::int64_t nearness = 0;
};

Interlinks interlinks(const Wiring& wiring, DeviceMask devices) {
  Interlinks sum{.weakest = std::popcount(devices) < 2 ? 0 : 63};
  for (auto rest = devices; rest != 0; rest &= rest - 1) {
    const auto a = std::countr_zero(rest);
    for (auto others = rest & (rest - 1); others != 0; others &= others - 1) {
      const auto& link = wiring.link(a, std::countr_zero(others));
      sum.nvlinks += link.nvlinks;
      sum.weakest = std::min<std::int64_t>(sum.weakest, link.nvlinks);
      sum.nearness += static_cast<int>(gpu::PcieLevel::kUnknown) - static_cast<int>(link.pcie);
    }
  }
  return sum;
}

/// Milli left on the devices of a share, after it took its part.
std::int64_t left_on(const NodeState& before, const Shape& shape, DeviceMask devices) {
  const auto& parts = shape.on(*before.kind).parts;
  std::int64_t left = 0;
  for (auto rest = devices; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(rest));
    left += before.devices[i].free_milli - parts[i].milli;
  }
  return left;
}

Score cpu_only(NodePolicy policy, const NodeState& before, const Shape& shape, int worth) {
  const auto left = before.free_milli_cpus - shape.request().milli_cpus;
  Packer high;
  high.add(before.kind->count() > 0, 1).add(before.kind->count() > 0 ? worth : 0, 8);
  high.add(std::popcount(before.whole()), 7);
  Packer low;
  policy == NodePolicy::kSpread ? low.add_less(left, 40) : low.add(left, 40);
  return {high.value(), low.value()};
}

Score pack(const NodeState& before, const Shape& shape, DeviceMask devices, int worth) {
  const auto idle_left = before.whole() & ~devices;
  const auto links = interlinks(before.kind->wiring, devices);
  Packer high;
  high.add(worth + (shape.gpus() == 1 && before.kind->nvlinks > 0 ? 1 : 0), 8);
  high.add(shape.whole() ? 0 : std::popcount(before.whole() & devices), 7);
  high.add(shape.whole() ? 0 : left_on(before, shape, devices), 16);
  high.add(std::popcount(idle_left), 7);
  high.add_less(links.nvlinks, 20);
  high.add_less(links.weakest, 6);
  Packer low;
  low.add_less(links.nearness, 14);
  low.add_less(interlinks(before.kind->wiring, idle_left).nvlinks, 16);
  low.add(before.free_milli_cpus - shape.request().milli_cpus, 34);
  return {high.value(), low.value()};
}

Score spread(const NodeState& before, const Shape& shape, DeviceMask devices) {
  const auto links = interlinks(before.kind->wiring, devices);
  std::int64_t left = 0;
  for (const auto& device : before.devices) left += std::max(device.free_milli, 0);
  Packer high;
  high.add_less(left, 17);
  high.add_less(shape.whole() ? 0 : left_on(before, shape, devices), 16);
  high.add_less(links.nvlinks, 20);
  high.add_less(links.weakest, 6);
  Packer low;
  low.add_less(links.nearness, 14);
  low.add_less(before.free_milli_cpus - shape.request().milli_cpus, 40);
  return {high.value(), low.value()};
}

}  // namespace

Score score(NodePolicy policy, const NodeState& before, const Shape& shape, DeviceMask devices, int worth) {
  if (shape.gpus() == 0) return cpu_only(policy, before, shape, worth);
  if (policy == NodePolicy::kSpread) return spread(before, shape, devices);
  return pack(before, shape, devices, worth);
}

NodeState after(const NodeState& before, const Shape& shape, DeviceMask devices) {
  auto state = before;
  const auto& parts = shape.on(*before.kind).parts;
  for (auto rest = devices; rest != 0; rest &= rest - 1)
    take(state, parts[static_cast<std::size_t>(std::countr_zero(rest))]);
  take(state, pinning(before, shape, devices), shape.request().milli_cpus,
       static_cast<std::int64_t>(shape.request().memory_bytes));
  return state;
}

}  // namespace drover::placement

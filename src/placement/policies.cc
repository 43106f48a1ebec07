#include "placement/policies.h"

#include <algorithm>
#include <bit>

namespace drover::placement {
namespace {

/// Fields of a score, most important first, packed from the top.
class Packer {
 public:
  Packer& add(std::int64_t value, int bits) {
    const auto most = (std::int64_t{1} << bits) - 1;
    value_ = value_ << bits | static_cast<std::uint64_t>(std::clamp<std::int64_t>(value, 0, most));
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

Score cpu_only(NodePolicy policy, const NodeState& before, int worth) {
  const bool has_gpus = before.kind->count() > 0;
  Packer high;
  high.add(has_gpus, 1).add(has_gpus ? worth : 0, 8).add(std::popcount(before.whole()), 7);
  Packer low;
  policy == NodePolicy::kSpread ? low.add_less(before.free_milli_cpus, 42)
                                : low.add(before.free_milli_cpus, 42);
  return {high.value(), low.value()};
}

Score pack(const NodeState& before, const Shape& shape, const DeviceOption& option, int worth) {
  Packer high;
  high.add(worth + (shape.gpus() == 1 && before.kind->nvlinks > 0 ? 1 : 0), 8);
  high.add(shape.whole() ? 0 : std::popcount(before.whole() & option.devices), 7);
  high.add(shape.whole() ? 0 : left_on(before, shape, option.devices), 16);
  high.add(std::popcount(before.whole() & ~option.devices), 7);
  high.add_less(option.nvlinks, 20).add_less(option.weakest, 6);
  Packer low;
  low.add_less(option.nearness, 14).add(option.nvlinks_lost, 16).add(before.free_milli_cpus, 34);
  return {high.value(), low.value()};
}

Score spread(const NodeState& before, const Shape& shape, const DeviceOption& option) {
  std::int64_t left = 0;
  for (const auto& device : before.devices) left += std::max(device.free_milli, 0);
  Packer high;
  high.add_less(left, 17).add_less(shape.whole() ? 0 : left_on(before, shape, option.devices), 16);
  high.add_less(option.nvlinks, 20).add_less(option.weakest, 6);
  Packer low;
  low.add_less(option.nearness, 14).add_less(before.free_milli_cpus, 42);
  return {high.value(), low.value()};
}

Score score(const PolicyContext& context, const NodeState& before, const Shape& shape,
            const DeviceOption& option, std::optional<double> room_worth) {
  if (room_worth) return context.fragmentation.score(before, *room_worth, shape, option.devices);
  const auto worth = context.worth[static_cast<std::size_t>(before.kind->id)];
  if (shape.gpus() == 0) return cpu_only(context.policy, before, worth);
  if (context.policy == NodePolicy::kSpread) return spread(before, shape, option);
  return pack(before, shape, option, worth);
}

}  // namespace

std::optional<Choice> best_on(const PolicyContext& context, const NodeState& state, const Shape& shape,
                              Locality locality, OptionMemory* memory) {
  const auto room = devices_with_room(state, shape);
  std::optional<double> room_worth;
  if (context.policy == NodePolicy::kFragmentation && !host_obstacle(state, shape.request()))
    room_worth = context.fragmentation.worth(state);
  std::optional<Choice> best;
  const auto consider = [&](DeviceMask devices) {
    const auto option = best_option(state, shape, devices, locality, memory);
    if (!option) return false;
    const Choice choice{score(context, state, shape, *option, room_worth), option->devices};
    if (!best || choice.score < best->score) best = choice;
    return context.policy != NodePolicy::kFragmentation;
  };
  if (shape.whole() || shape.gpus() != 1) {
    consider(room);
  } else {
    const auto allowed = room & shape.on(*state.kind).allowed;
    for_each_filling(state, allowed, context.policy != NodePolicy::kSpread, consider);
  }
  return best;
}

}  // namespace drover::placement

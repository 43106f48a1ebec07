#include "placement/options.h"

#include <algorithm>
#include <bit>

namespace drover::placement {
namespace {

constexpr std::size_t kMostRemembered = 1 << 14;

struct Pairs {
  std::int32_t nvlinks = 0;
  std::int32_t weakest = 0;
  std::int32_t nearness = 0;
};

Pairs pairs_of(const Wiring& wiring, DeviceMask devices) {
  Pairs pairs;
  bool first = true;
  for (auto rest = devices; rest != 0; rest &= rest - 1)
    for (auto others = rest & (rest - 1); others != 0; others &= others - 1) {
      const auto& link = wiring.link(std::countr_zero(rest), std::countr_zero(others));
      pairs.nvlinks += link.nvlinks;
      pairs.weakest = first ? link.nvlinks : std::min(pairs.weakest, link.nvlinks);
      pairs.nearness += static_cast<int>(gpu::PcieLevel::kUnknown) - static_cast<int>(link.pcie);
      first = false;
    }
  return pairs;
}

DeviceOption describe_option(const NodeState& state, DeviceMask devices) {
  const auto pairs = pairs_of(state.kind->wiring, devices);
  const auto left = pairs_of(state.kind->wiring, state.whole() & ~devices);
  return {devices, pairs.nvlinks, pairs.weakest, pairs.nearness, left.nvlinks};
}

}  // namespace

std::size_t OptionMemory::Hash::operator()(const Key& key) const {
  auto hash = key.room * 0x9e3779b97f4a7c15ULL;
  hash = (hash ^ key.idle ^ hash >> 29) * 0xbf58476d1ce4e5b9ULL;
  return (hash ^ static_cast<std::uint64_t>(key.kind) ^ hash >> 32) * 0x94d049bb133111ebULL;
}

OptionMemory::Answer* OptionMemory::find(const Key& key) {
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : &found->second;
}

void OptionMemory::remember(const Key& key, const std::optional<DeviceOption>& option) {
  if (known_.size() >= kMostRemembered) known_.clear();
  known_.emplace(key, Answer{option, std::nullopt});
}

std::optional<DeviceOption> best_option(const NodeState& state, const Shape& shape, DeviceMask room,
                                        Locality locality, OptionMemory* memory) {
  if (shape.gpus() == 0) return describe_option(state, 0);
  const bool ignores_cpus =
      locality == Locality::kIgnorePreferredCpus && shape.request().cpu_affinity != Wish::kRequire;
  const OptionMemory::Key key{state.kind->id, room, state.whole()};
  if (memory != nullptr && ignores_cpus)
    if (const auto* known = memory->find(key)) return known->option;
  auto wish = device_wish(state, shape, room);
  if (ignores_cpus) wish.cpu_affinity = Wish::kNone;
  std::optional<DeviceOption> option;
  if (const auto devices = choose(state.kind->wiring, wish)) option = describe_option(state, *devices);
  if (memory != nullptr && ignores_cpus) memory->remember(key, option);
  return option;
}

std::optional<Obstacle> missing_condition(const NodeState& state, const Shape& shape, OptionMemory* memory) {
  const bool memorable = memory != nullptr && shape.request().cpu_affinity != Wish::kRequire;
  auto* known =
      memorable ? memory->find({state.kind->id, devices_with_room(state, shape), state.whole()}) : nullptr;
  if (known != nullptr && known->missing) return known->missing;
  const auto missing = set_obstacle(state, shape);
  if (known != nullptr) known->missing = missing;
  return missing;
}

}  // namespace drover::placement

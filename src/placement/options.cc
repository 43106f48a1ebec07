#include "placement/options.h"

#include <algorithm>
#include <bit>

#include "placement/device_mask.h"
#include "placement/wiring_tables.h"

namespace drover::placement {
namespace {

constexpr std::size_t kPlaces = 1024;

template <typename Visit>
void for_each_pair(const Wiring& wiring, DeviceMask devices, const Visit& visit) {
  for_each_device(devices, [&](int a) {
    for_each_device(devices & ~first_devices(a + 1), [&](int b) { visit(wiring.link(a, b)); });
  });
}

DeviceOption describe_option(const NodeState& state, DeviceMask devices) {
  DeviceOption option{.devices = devices};
  const auto& wiring = state.kind->wiring;
  Pairs pairs;
  bool first = true;
  for_each_pair(wiring, devices, [&](const gpu::Link& link) {
    pairs += Pairs(link);
    option.weakest = first ? link.nvlinks : std::min(option.weakest, link.nvlinks);
    first = false;
  });
  option.nvlinks = static_cast<std::int32_t>(pairs.nvlinks);
  option.nearness = static_cast<std::int32_t>(pairs.nearness);
  const auto opened = devices & state.whole();
  for_each_pair(wiring, opened, [&](const gpu::Link& link) { option.nvlinks_lost += link.nvlinks; });
  for_each_device(opened, [&](int a) {
    for_each_device(state.whole() & ~opened,
                    [&](int b) { option.nvlinks_lost += wiring.link(a, b).nvlinks; });
  });
  return option;
}

}  // namespace

std::size_t OptionMemory::place_of(const Key& key) {
  auto hash = key.room * 0x9e3779b97f4a7c15ULL;
  hash = (hash ^ key.idle ^ hash >> 29) * 0xbf58476d1ce4e5b9ULL;
  hash = (hash ^ static_cast<std::uint64_t>(key.kind) ^ hash >> 32) * 0x94d049bb133111ebULL;
  return hash >> 32 & (kPlaces - 1);
}

OptionMemory::Answer* OptionMemory::find(const Key& key) {
  if (places_.empty()) return nullptr;
  auto& place = places_[place_of(key)];
  return place.key == key ? &place.answer : nullptr;
}

void OptionMemory::remember(const Key& key, const std::optional<DeviceOption>& option) {
  if (places_.empty()) places_.resize(kPlaces);
  places_[place_of(key)] = {key, {option, std::nullopt}};
}

std::optional<DeviceOption> best_option(const NodeState& state, const Shape& shape, DeviceMask room,
                                        Locality locality, OptionMemory* memory) {
  if (shape.gpus() == 0) return DeviceOption{};
  // One device, and no condition on it: there is nothing to choose.
  if (std::has_single_bit(room) && shape.unconditional()) return describe_option(state, room);
  const bool ignores_cpus =
      locality == Locality::kIgnorePreferredCpus && shape.request().cpu_affinity != Preference::kRequire;
  const OptionMemory::Key key{state.kind->id, room, state.whole()};
  if (memory != nullptr && ignores_cpus)
    if (const auto* known = memory->find(key)) return known->option;
  auto criteria = device_criteria(state, shape, room);
  if (ignores_cpus) criteria.cpu_affinity = Preference::kNone;
  std::optional<DeviceOption> option;
  if (const auto devices = choose(state.kind->wiring, criteria)) option = describe_option(state, *devices);
  if (memory != nullptr && ignores_cpus) memory->remember(key, option);
  return option;
}

std::optional<Obstacle> missing_condition(const NodeState& state, const Shape& shape, OptionMemory* memory) {
  const bool memorable = memory != nullptr && shape.request().cpu_affinity != Preference::kRequire;
  auto* known =
      memorable ? memory->find({state.kind->id, devices_with_room(state, shape), state.whole()}) : nullptr;
  if (known != nullptr && known->missing) return known->missing;
  const auto missing = set_obstacle(state, shape);
  if (known != nullptr) known->missing = missing;
  return missing;
}

}  // namespace drover::placement

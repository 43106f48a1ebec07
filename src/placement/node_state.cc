#include "placement/node_state.h"

#include <algorithm>
#include <array>
#include <bit>

namespace drover::placement {
namespace {

// More than these are mistakes, and sums would overflow.
constexpr std::int64_t kMostNodeMilliCpus = std::int64_t{1} << 40;
constexpr std::uint64_t kMostNodeMemory = 1ULL << 60;

void update_idle(NodeState& state, int device) {
  const auto& now = state.devices[static_cast<std::size_t>(device)];
  const auto& kind = state.kind->devices[static_cast<std::size_t>(device)];
  const bool idle = now.free_milli == 1000 && now.free_memory == static_cast<std::int64_t>(kind.memory_bytes);
  state.idle = idle ? state.idle | device_bit(device) : state.idle & ~device_bit(device);
}

}  // namespace

int cordon_number(const std::string& words) {
  if (words.empty()) return 0;
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : words) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return 1 + static_cast<int>(hash % 16);
}

DeviceMask healthy_devices(const Node& node, const NodeKind& kind) {
  DeviceMask healthy = 0;
  for (int i = 0; i < kind.count(); ++i)
    if (gpu::why_withheld(node.inventory.devices[static_cast<std::size_t>(i)]).empty())
      healthy |= device_bit(i);
  return healthy;
}

NodeState make_node_state(const Node& node, const NodeKind& kind) {
  NodeState state;
  state.kind = &kind;
  for (const auto& device : kind.devices)
    state.devices.push_back({.free_memory = static_cast<std::int64_t>(device.memory_bytes)});
  state.healthy = healthy_devices(node, kind);
  state.cordon = cordon_number(node.cordoned);
  state.idle = kind.all;
  state.milli_cpus = state.free_milli_cpus = std::clamp<std::int64_t>(node.milli_cpus, 0, kMostNodeMilliCpus);
  state.memory_bytes = state.free_memory =
      static_cast<std::int64_t>(std::min(node.memory_bytes, kMostNodeMemory));
  return state;
}

void take(NodeState& state, const Part& part, int sign) {
  auto& device = state.devices[static_cast<std::size_t>(part.device)];
  device.free_milli -= sign * part.milli;
  device.free_memory -= sign * part.memory;
  update_idle(state, part.device);
}

void take_part(NodeState& state, const TakenPart& part, int sign) {
  const auto place = std::ranges::lower_bound(state.parts, part);
  if (sign > 0)
    state.parts.insert(place, part);
  else if (place != state.parts.end() && *place == part)
    state.parts.erase(place);
}

void take(NodeState& state, NumaMask pinned, std::int64_t milli_cpus, std::int64_t memory, int sign) {
  state.free_milli_cpus -= sign * milli_cpus;
  state.free_memory -= sign * memory;
  if (pinned == 0 || milli_cpus == 0) return;
  auto entry = std::ranges::lower_bound(state.pinned, pinned, {}, &PinnedCpus::numa);
  if (entry == state.pinned.end() || entry->numa != pinned) entry = state.pinned.insert(entry, {pinned, 0});
  entry->milli += sign * milli_cpus;
  if (entry->milli == 0) state.pinned.erase(entry);
}

std::bitset<256> cpus_suffice(const NodeState& state, std::int64_t milli_cpus) {
  std::bitset<256> enough;
  const auto& cpus = state.kind->numa_cpus;
  const auto sets = 1U << cpus.size();
  if (state.free_milli_cpus < milli_cpus) return enough;
  std::array<bool, 256> room{};
  std::array<std::int64_t, 256> all_exist{};
  for (unsigned set = 1; set < sets; ++set) {
    const auto first = cpus[static_cast<std::size_t>(std::countr_zero(set))].size();
    const auto exist = all_exist[set] = all_exist[set & (set - 1)] + 1000 * static_cast<std::int64_t>(first);
    std::int64_t pinned = 0;
    for (const auto& taken : state.pinned)
      if ((taken.numa & ~set) == 0) pinned += taken.milli;
    room[set] = exist > 0 && exist - pinned >= milli_cpus;
  }
  for (unsigned set = sets - 1; set >= 1; --set) {
    bool all = room[set];
    for (std::size_t i = 0; i < cpus.size(); ++i)
      if ((set >> i & 1) == 0) all = all && enough.test(set | 1U << i);
    enough.set(set, all);
  }
  return enough;
}

}  // namespace drover::placement

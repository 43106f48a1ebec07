#include <algorithm>
#include <bit>
#include <set>

#include "placement/cluster_impl.h"

namespace drover::placement {
namespace {

/// What makes a kind of node costly to waste on work that does not need it.
struct Worth {
  std::uint64_t memory_bytes = 0;
  gpu::ComputeCapability capability;
};

Worth worth_of(const NodeKind& kind) {
  Worth worth;
  for (const auto& device : kind.devices) {
    worth.memory_bytes = std::max(worth.memory_bytes, device.memory_bytes);
    worth.capability =
        std::max(worth.capability, device.compute_capability.value_or(gpu::ComputeCapability{}));
  }
  return worth;
}

template <typename T>
int rank_in(const std::set<T>& values, const T& value) {
  return static_cast<int>(std::distance(values.begin(), values.lower_bound(value)));
}

}  // namespace

std::optional<int> NodeEntry::device(const std::string& uuid) const {
  const auto& devices = node->inventory.devices;
  for (int i = 0; i < kind->count(); ++i)
    if (devices[static_cast<std::size_t>(i)].uuid == uuid) return i;
  return std::nullopt;
}

NodeEntry* Cluster::Impl::find(const std::string& name) {
  const auto found = positions.find(name);
  return found == positions.end() ? nullptr : &entries[found->second];
}

void Cluster::Impl::set_node(Node node) {
  auto* entry = find(node.name);
  if (entry != nullptr && *entry->node == node) return;
  auto& kind = kinds[fingerprint(node)];
  if (!kind)
    kind = std::make_shared<const NodeKind>(make_node_kind(node, static_cast<int>(kinds.size()) - 1));
  if (entry == nullptr) {
    positions.emplace(node.name, entries.size());
    entry = &entries.emplace_back();
  }
  entry->kind = kind;
  entry->state = make_node_state(node, *kind);
  entry->node = std::make_shared<const Node>(std::move(node));
  recharge(*entry);
  rank_kinds();
}

Status Cluster::Impl::remove_node(const std::string& name) {
  const auto* entry = find(name);
  if (entry == nullptr) return {};
  if (entry->allocations > 0)
    return fail(ErrorKind::kConflict, "Something is allocated on node '" + name + "'",
                "cordon it, and remove it when its work has ended");
  const auto position = positions.at(name);
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(position));
  positions.erase(name);
  for (auto& [other, place] : positions)
    if (place > position) --place;
  rank_kinds();
  return {};
}

void Cluster::Impl::rank_kinds() {
  fragmentation.note_nodes();
  std::set<std::uint64_t> memories;
  std::set<gpu::ComputeCapability> capabilities;
  for (const auto& entry : entries) {
    if (entry.kind->count() == 0) continue;
    const auto worth = worth_of(*entry.kind);
    memories.insert(worth.memory_bytes);
    capabilities.insert(worth.capability);
  }
  for (auto& entry : entries) {
    const auto worth = worth_of(*entry.kind);
    entry.worth = entry.kind->count() == 0
                      ? 0
                      : rank_in(memories, worth.memory_bytes) + rank_in(capabilities, worth.capability);
  }
}

void Cluster::Impl::recharge(NodeEntry& entry) {
  entry.allocations = 0;
  std::set<std::string> groups;
  for (const auto& [id, allocation] : ledger.all()) {
    if (allocation.decision.node != entry.node->name) continue;
    const bool gpus = allocation.group.empty() || groups.insert(allocation.group).second;
    charge(allocation, gpus, 1);
  }
}

void Cluster::Impl::charge(const Allocation& allocation, bool gpus, int sign) {
  auto* entry = find(allocation.decision.node);
  if (entry == nullptr) return;  // of a node that is to come
  entry->allocations += sign;
  const auto pinned = numa_with_cpus(*entry->kind, allocation.decision.cpus);
  take(entry->state, pinned, allocation.milli_cpus, static_cast<std::int64_t>(allocation.memory_bytes), sign);
  if (!gpus) return;
  for (const auto& grant : allocation.decision.gpus)
    if (const auto device = entry->device(grant.uuid))
      take(entry->state, {*device, grant.milli, static_cast<std::int64_t>(grant.memory_bytes)}, sign);
}

Free free_of(const NodeState& state) {
  Free free{.gpus = std::popcount(state.whole()),
            .milli_cpus = std::max<std::int64_t>(0, state.free_milli_cpus),
            .memory_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, state.free_memory))};
  for (std::size_t i = 0; i < state.devices.size(); ++i)
    if ((state.fit & device_bit(static_cast<int>(i))) != 0)
      free.gpu_milli += std::max(0, state.devices[i].free_milli);
  return free;
}

}  // namespace drover::placement

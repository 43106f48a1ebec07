#include <algorithm>
#include <bit>
#include <set>

#include "placement/cluster_impl.h"
#include "placement/part_fit.h"

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

/// What is allocated on the node stays as it is when it becomes `next`.
bool same_hardware(const Node& now, const Node& next) {
  return now.milli_cpus == next.milli_cpus && now.memory_bytes == next.memory_bytes &&
         std::ranges::equal(now.inventory.devices, next.inventory.devices, {}, &gpu::Device::uuid,
                            &gpu::Device::uuid);
}

}  // namespace

const NodeEntry* Cluster::Impl::find(const std::string& name) const {
  const auto slot = nodes.find(name);
  return slot ? &nodes.at(*slot) : nullptr;
}

std::shared_ptr<const NodeKind> Cluster::Impl::kind_of(const Node& node) {
  const auto text = fingerprint(node);
  const auto found = kinds->find(text);
  if (found != kinds->end()) return found->second.kind;
  auto& known = kinds.mutate();
  const auto id = static_cast<int>(known.size());
  return known.emplace(text, KnownKind{std::make_shared<const NodeKind>(make_node_kind(node, id)), 0})
      .first->second.kind;
}

void Cluster::Impl::count_kind(const NodeKind& kind, int change) {
  auto& known = kinds.mutate();
  const auto found =
      std::ranges::find(known, &kind, [](const auto& entry) { return entry.second.kind.get(); });
  context.fragmentation.note_nodes();
  const bool was = found->second.nodes > 0;
  found->second.nodes += change;
  if (was != (found->second.nodes > 0)) rank_kinds();
}

std::vector<int> ranks_of(const std::vector<const NodeKind*>& kinds) {
  std::set<std::uint64_t> memories;
  std::set<gpu::ComputeCapability> capabilities;
  std::size_t size = 0;
  for (const auto* kind : kinds) {
    size = std::max(size, static_cast<std::size_t>(kind->id) + 1);
    if (kind->count() == 0) continue;
    memories.insert(worth_of(*kind).memory_bytes);
    capabilities.insert(worth_of(*kind).capability);
  }
  std::vector<int> ranks(size);
  for (const auto* kind : kinds)
    if (kind->count() > 0)
      ranks[static_cast<std::size_t>(kind->id)] =
          rank_in(memories, worth_of(*kind).memory_bytes) + rank_in(capabilities, worth_of(*kind).capability);
  return ranks;
}

void Cluster::Impl::rank_kinds() {
  std::vector<const NodeKind*> present;
  for (const auto& [text, known] : *kinds)
    if (known.nodes > 0) present.push_back(known.kind.get());
  auto ranks = ranks_of(present);
  if (context.worth == ranks) return;
  context.worth = std::move(ranks);
  views.clear();
}

void Cluster::Impl::set_node(Node node) {
  const auto slot = nodes.find(node.name);
  if (slot && *nodes.at(*slot).node == node) return;
  NodeEntry next{.kind = kind_of(node)};
  next.node = std::make_shared<const Node>(std::move(node));
  if (!slot) {
    count_kind(*next.kind, 1);
    next.state = make_node_state(*next.node, *next.kind);
    if (awaited->contains(next.node->name)) {
      fill(next);
      awaited.mutate().erase(next.node->name);
    }
    nodes.append(std::move(next));
    return;
  }
  const auto& now = nodes.at(*slot);
  const auto old_kind = now.kind;
  const auto new_kind = next.kind;
  if (old_kind == next.kind && same_hardware(*now.node, *next.node)) {
    next.state = now.state;
    next.allocations = now.allocations;
    next.state.healthy = healthy_devices(*next.node, *next.kind);
    next.state.cordon = cordon_number(next.node->cordoned);
  } else {
    fill(next);
  }
  nodes.change(*slot, [&](NodeEntry& entry) { entry = std::move(next); });
  if (old_kind == new_kind) return;
  count_kind(*new_kind, 1);
  count_kind(*old_kind, -1);
}

Status Cluster::Impl::remove_node(const std::string& name) {
  const auto slot = nodes.find(name);
  if (!slot) return {};
  if (nodes.at(*slot).allocations > 0)
    return fail(ErrorKind::kConflict, "Something is allocated on node '" + name + "'",
                "cordon it, and remove it when its work has ended");
  const auto kind = nodes.at(*slot).kind;
  nodes.erase(*slot);
  views.clear();
  count_kind(*kind, -1);
  return {};
}

void Cluster::Impl::fill(NodeEntry& entry) const {
  entry.state = make_node_state(*entry.node, *entry.kind);
  entry.allocations = 0;
  ledger.visit_node(entry.node->name,
                    [&](const Allocation& allocation, bool gpus) { charge(entry, allocation, gpus, 1); });
}

Cluster::Impl Cluster::Impl::emptied() const {
  Impl empty;
  empty.context = context;
  empty.kinds = kinds;
  for (std::size_t slot = 0; slot < nodes.size(); ++slot) {
    auto entry = nodes.at(slot);
    entry.node = with_all_parts(entry.node);
    entry.state = make_node_state(*entry.node, *entry.kind);
    entry.state.healthy = entry.kind->all;
    entry.state.cordon = 0;
    entry.allocations = 0;
    empty.nodes.append(std::move(entry));
  }
  return empty;
}

void charge(NodeEntry& entry, const Allocation& allocation, bool gpus, int sign) {
  const auto& decision = allocation.decision;
  entry.allocations += sign;
  take(entry.state, numa_with_cpus(*entry.kind, decision.cpus), allocation.milli_cpus,
       static_cast<std::int64_t>(allocation.memory_bytes), sign);
  if (!gpus) return;
  for (const auto& grant : decision.gpus) {
    const auto device = entry.device(grant.uuid);
    if (!device) continue;
    take(entry.state, {*device, grant.milli, static_cast<std::int64_t>(grant.memory_bytes)}, sign);
    if (grant.mig)
      take_part(entry.state, TakenPart{*device, {grant.mig->profile_id, grant.mig->placement}}, sign);
  }
}

Free free_of(const NodeState& state) {
  Free free{.gpus = std::popcount(state.whole()),
            .milli_cpus = std::max<std::int64_t>(0, state.free_milli_cpus),
            .memory_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, state.free_memory))};
  for (std::size_t i = 0; i < state.devices.size(); ++i)
    if ((state.healthy & device_bit(static_cast<int>(i))) != 0)
      free.gpu_milli += std::max(0, state.devices[i].free_milli);
  return free;
}

}  // namespace drover::placement

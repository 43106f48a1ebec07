#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "placement/cluster_impl.h"
#include "placement/explain.h"
#include "placement/part_fit.h"
#include "placement/words.h"

namespace drover::placement {
Decision decide(const NodeEntry& entry, const Shape& shape, DeviceMask devices) {
  Decision decision{.node = entry.node->name};
  const auto& kind = *entry.kind;
  if (shape.wants_parts()) {
    decision.gpus = grants_of_parts(entry.state, *entry.node, shape.request());
    for (const auto& grant : decision.gpus) devices |= device_bit(entry.device(grant.uuid).value());
    decision.cpus = cpus_of(kind, pinning(entry.state, shape.request(), devices));
    return decision;
  }
  const auto& parts = shape.on(kind).parts;
  for (auto rest = devices; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(rest));
    decision.gpus.push_back(
        {entry.node->inventory.devices[i].uuid, parts[i].milli, static_cast<std::uint64_t>(parts[i].memory)});
  }
  decision.cpus = cpus_of(kind, pinning(entry.state, shape.request(), devices));
  if (shape.request().nic != Preference::kNone) decision.nics = nics_of(kind, numa_of(kind.wiring, devices));
  return decision;
}

void Cluster::Impl::refresh_fragmentation() {
  if (context.policy != NodePolicy::kFragmentation || !context.fragmentation.due()) return;
  std::vector<const NodeState*> states;
  for (std::size_t slot = 0; slot < nodes.size(); ++slot) states.push_back(&nodes.at(slot).state);
  context.fragmentation.update(states);
  views.clear();
}

const ShapeView& Cluster::Impl::view(const Request& request) {
  refresh_fragmentation();
  return views.view(request, nodes, context);
}

std::optional<Decision> Cluster::Impl::best(const Request& request) {
  const auto& seen = view(request);
  const auto slot = seen.best(nodes, context, request);
  if (!slot) return std::nullopt;
  const Shape shape(request, seen.fits());
  const auto& entry = nodes.at(*slot);
  return decide(entry, shape, best_on(context, entry.state, shape, Locality::kAll).value().devices);
}

std::vector<std::size_t> Cluster::Impl::fitting(const Request& request) {
  return view(request).fitting(nodes, context, request);
}

std::size_t Cluster::Impl::count_fitting(const Request& request) {
  return view(request).count_fitting(nodes, request.milli_cpus,
                                     static_cast<std::int64_t>(request.memory_bytes));
}

Reasons Cluster::Impl::why_not(const Request& request) {
  const auto& seen = view(request);
  return explain(nodes, Shape(request, seen.fits()), seen.tallies(nodes, request.milli_cpus));
}

Answer Cluster::Impl::place_on(const std::string& node, const Request& request) {
  const auto* entry = find(node);
  if (entry == nullptr)
    return Reasons{.nodes = 0, .list = {{Dimension::kGpuCount, 0, "there is no node " + node}}};
  if (const auto* group = ledger.group(request.group)) {
    if (group->node == node) return place_in_group(request);
    return Reasons{.nodes = 1,
                   .list = {{Dimension::kGroup, 1, "the GPUs of its group are on " + group->node}}};
  }
  if (auto decision = try_place_on(node, request)) return *std::move(decision);
  return explain_node(view_of(*entry), Shape(request));
}

std::optional<Decision> Cluster::Impl::try_place_on(const std::string& node, const Request& request) {
  if (const auto* group = ledger.group(request.group)) {
    if (group->node != node) return std::nullopt;
    auto answer = place_in_group(request);
    auto* decision = std::get_if<Decision>(&answer);
    return decision == nullptr ? std::nullopt : std::optional(std::move(*decision));
  }
  const auto* entry = find(node);
  if (entry == nullptr || host_obstacle(entry->state, request)) return std::nullopt;
  refresh_fragmentation();
  const Shape shape(request, views.fits(request));
  if (obstacle(entry->state, *entry->node, shape)) return std::nullopt;
  return decide(*entry, shape, best_on(context, entry->state, shape, Locality::kAll).value().devices);
}

Answer Cluster::Impl::place_in_group(const Request& request) const {
  const auto& group = *ledger.group(request.group);
  const auto refuse = [&](std::string why) {
    return Reasons{.nodes = 1, .list = {{Dimension::kGroup, 1, std::move(why)}}};
  };
  if (group.claims != request.gpus || group.share != request.share)
    return refuse("it asks for other GPUs than its group has");
  if (group.by_mps != request.by_mps())
    return refuse(fmt::format("its group has its GPUs {} MPS", group.by_mps ? "by" : "without"));
  const auto* entry = find(group.node);
  if (entry == nullptr || entry->state.cordon != 0)
    return refuse(fmt::format("the GPUs of its group are on {}, which takes no new work", group.node));
  if (request.eligibility && request.eligibility->why_not(group.node) != nullptr)
    return refuse(fmt::format("the GPUs of its group are on {}, where it may not run", group.node));
  DeviceMask devices = 0;
  for (const auto& grant : group.gpus)
    if (const auto device = entry->device(grant.uuid)) devices |= device_bit(*device);
  if (std::popcount(devices) != static_cast<int>(group.gpus.size()) || (devices & ~entry->state.healthy) != 0)
    return refuse(fmt::format("the GPUs of its group are on {} and not in good health", group.node));
  const auto& state = entry->state;
  const Shape shape(request);
  const auto& together = shape.on(*entry->kind).together;
  if (!together.empty() &&
      std::ranges::none_of(together, [&](DeviceMask set) { return (devices & ~set) == 0; }))
    return refuse(fmt::format("the GPUs of its group are not all {}: {}",
                              capabilities_text(request.capabilities), request.capabilities.reason));
  const auto pinned = pinning(state, request, devices);
  if (request.cpu_affinity == Preference::kRequire && pinned == 0)
    return refuse(fmt::format("the GPUs of its group are on {}, which lacks {} CPUs near them", group.node,
                              cpus_text(request.milli_cpus)));
  if (const auto found = host_obstacle(state, request)) {
    const auto text = sentence(shape, *found, view_of(*entry));
    return refuse(fmt::format("the GPUs of its group are on {}, where {}", group.node, text));
  }
  auto decision = decide(*entry, shape, devices);
  decision.gpus = group.gpus;
  return decision;
}

}  // namespace drover::placement

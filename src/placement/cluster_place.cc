#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include "placement/cluster_impl.h"
#include "placement/explain.h"
#include "placement/words.h"

namespace drover::placement {
namespace {

struct Choice {
  Score score;
  DeviceMask devices = 0;
};

/// The best of what the node offers; the request fits on it.
template <typename Rate>
Choice best_on(const NodeEntry& entry, const Shape& shape, const Rate& rate) {
  std::optional<Choice> best;
  for (const auto devices : candidates(entry.state, shape)) {
    const Choice choice{rate(entry, shape, devices), devices};
    if (!best || choice.score < best->score) best = choice;
  }
  return best.value();
}

bool fits(const NodeEntry& entry, const Shape& shape) {
  return !obstacle(entry.state, entry.node->attributes, shape);
}

}  // namespace

Decision decide(const NodeEntry& entry, const Shape& shape, DeviceMask devices) {
  Decision decision{.node = entry.node->name};
  const auto& kind = *entry.kind;
  const auto& parts = shape.on(kind).parts;
  for (auto rest = devices; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(rest));
    decision.gpus.push_back(
        {entry.node->inventory.devices[i].uuid, parts[i].milli, static_cast<std::uint64_t>(parts[i].memory)});
  }
  decision.cpus = cpus_of(kind, pinning(entry.state, shape, devices));
  if (shape.request().nic != Wish::kNone) decision.nics = nics_of(kind, numa_of(kind.wiring, devices));
  return decision;
}

void Cluster::Impl::look_around() {
  if (policy != NodePolicy::kFragmentation || !fragmentation.due()) return;
  std::vector<const NodeState*> states;
  for (const auto& entry : entries) states.push_back(&entry.state);
  fragmentation.look_at(states);
}

Score Cluster::Impl::rate(const NodeEntry& entry, const Shape& shape, DeviceMask devices) const {
  if (policy == NodePolicy::kFragmentation)
    if (const auto score = fragmentation.score(entry.state, shape, devices)) return *score;
  return score(policy, entry.state, shape, devices, entry.worth);
}

std::optional<Decision> Cluster::Impl::best(const Shape& shape) const {
  const auto rating = [this](const auto&... what) { return rate(what...); };
  const NodeEntry* node = nullptr;
  Choice best;
  for (const auto& entry : entries) {
    if (!fits(entry, shape)) continue;
    const auto choice = best_on(entry, shape, rating);
    if (node != nullptr && choice.score >= best.score) continue;
    node = &entry;
    best = choice;
  }
  if (node == nullptr) return std::nullopt;
  return decide(*node, shape, best.devices);
}

std::vector<std::string> Cluster::Impl::fitting(const Shape& shape) const {
  const auto rating = [this](const auto&... what) { return rate(what...); };
  std::vector<std::pair<Score, std::size_t>> found;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (fits(entries[i], shape)) found.emplace_back(best_on(entries[i], shape, rating).score, i);
  std::ranges::sort(found);
  std::vector<std::string> names;
  for (const auto& [score, position] : found) names.push_back(entries[position].node->name);
  return names;
}

Answer Cluster::Impl::place_on(const std::string& node, const Shape& shape) const {
  const auto rating = [this](const auto&... what) { return rate(what...); };
  const auto* group = ledger.group(shape.request().group);
  if (group != nullptr && group->node == node) return place_in_group(shape);
  const auto* entry = find(node);
  if (entry == nullptr)
    return Reasons{.nodes = 0, .list = {{Dimension::kGpuCount, 0, "there is no node " + node}}};
  if (group != nullptr)
    return Reasons{.nodes = 1,
                   .list = {{Dimension::kGroup, 1, "the GPUs of its group are on " + group->node}}};
  if (const auto found = obstacle(entry->state, entry->node->attributes, shape)) {
    Explanation explanation(shape);
    explanation.add({&entry->state, entry->node.get()}, *found);
    return explanation.reasons();
  }
  return decide(*entry, shape, best_on(*entry, shape, rating).devices);
}

Answer Cluster::Impl::place_in_group(const Shape& shape) const {
  const auto& request = shape.request();
  const auto& group = *ledger.group(request.group);
  const auto refuse = [&](std::string why) {
    return Reasons{.nodes = 1, .list = {{Dimension::kGroup, 1, std::move(why)}}};
  };
  if (group.claims != request.gpus || group.share != request.share)
    return refuse("it asks for other GPUs than its group has");
  const auto* entry = find(group.node);
  if (entry == nullptr || entry->state.cordoned)
    return refuse(fmt::format("the GPUs of its group are on {}, which takes no new work", group.node));
  DeviceMask devices = 0;
  for (const auto& grant : group.gpus)
    if (const auto device = entry->device(grant.uuid)) devices |= device_bit(*device);
  if (std::popcount(devices) != static_cast<int>(group.gpus.size()) || (devices & ~entry->state.fit) != 0)
    return refuse(fmt::format("the GPUs of its group are on {} and not in good health", group.node));
  const auto& state = entry->state;
  const auto pinned = pinning(state, shape, devices);
  if (request.cpu_affinity == Wish::kRequire && pinned == 0)
    return refuse(fmt::format("the GPUs of its group are on {}, which lacks {} CPUs near them", group.node,
                              cpus_text(request.milli_cpus)));
  if (const auto found = host_obstacle(state, shape)) {
    const auto text = sentence(shape, *found, {&state, entry->node.get()});
    return refuse(fmt::format("the GPUs of its group are on {}, where {}", group.node, text));
  }
  auto decision = decide(*entry, shape, devices);
  decision.gpus = group.gpus;
  return decision;
}

Answer Cluster::Impl::explain(const Shape& shape) const {
  Explanation explanation(shape);
  for (const auto& entry : entries)
    if (const auto found = obstacle(entry.state, entry.node->attributes, shape))
      explanation.add({&entry.state, entry.node.get()}, *found);
  return explanation.reasons();
}

}  // namespace drover::placement

#include "placement/explain.h"

#include <algorithm>
#include <tuple>

namespace drover::placement {
namespace {

/// Nodes that are cordoned for different reasons may share a tally: then none is named.
bool same_words(const NodeTable& nodes, const Tally& tally) {
  const auto& words = nodes.at(tally.first).node->cordoned;
  for (auto slot = tally.first + 1; slot < nodes.size(); ++slot) {
    const auto& entry = nodes.at(slot);
    if (entry.state.cordon == tally.obstacle.variant && entry.node->cordoned != words) return false;
  }
  return true;
}

Reason reason_of(const NodeTable& nodes, const Shape& shape, const Tally& tally) {
  const auto dimension = tally.obstacle.dimension;
  if (dimension == Dimension::kCordon && !same_words(nodes, tally))
    return {dimension, tally.nodes, "is cordoned"};
  return {dimension, tally.nodes,
          clause(shape, tally.obstacle, view_of(nodes.at(tally.first)), tally.nodes == 1)};
}

/// CPUs, or memory, of a node.
struct HostAmount {
  std::int64_t wanted, free, all;
};

/// Whether it comes free with the GPUs that are wanted: it is no more than the part that they are of the
/// node's, and no more is taken than with the GPUs that are taken.
bool goes_with_gpus(const Shape& shape, const NodeState& state, const HostAmount& amount) {
  const auto& share = shape.request().share;
  if (share.memory_bytes > 0) return false;
  std::int64_t free_gpus = 0;
  for (const auto& device : state.devices) free_gpus += device.free_milli;
  __extension__ using Wide = __int128;
  const auto each = Wide{1000} * state.kind->count();
  return amount.wanted * each <= Wide{amount.all} * shape.gpus() * share.milli &&
         amount.free * each >= Wide{amount.all} * free_gpus;
}

}  // namespace

Reasons explain(const NodeTable& nodes, const Shape& shape, const std::vector<Tally>& tallies) {
  if (nodes.size() == 1) return explain_node(view_of(nodes.at(0)), shape);
  Reasons reasons{.nodes = static_cast<int>(nodes.size())};
  if (nodes.size() == 0) reasons.list.push_back({Dimension::kGpuCount, 0, "there are no nodes"});
  for (const auto& tally : tallies) reasons.list.push_back(reason_of(nodes, shape, tally));
  // What most nodes lack comes first, and what only a person can change last.
  std::ranges::sort(reasons.list, {}, [](const Reason& reason) {
    return std::tuple(reason.dimension == Dimension::kCordon, -reason.nodes, reason.dimension, reason.text);
  });
  return reasons;
}

Reasons explain_node(const NodeView& view, const Shape& shape) {
  Reasons reasons{.nodes = 1};
  const auto add = [&](const std::optional<Obstacle>& obstacle) {
    if (obstacle) reasons.list.push_back({obstacle->dimension, 1, sentence(shape, *obstacle, view)});
    return obstacle.has_value();
  };
  if (view.state.cordon != 0) add(Obstacle{Dimension::kCordon, 0, view.state.cordon});
  add(node_obstacle(view.node, shape));
  const auto& state = view.state;
  const bool gpus_short = add(room_obstacle(state, view.node, shape));
  if (!gpus_short) add(set_obstacle(state, shape));
  const auto tell = [&](Dimension dimension, const HostAmount& amount) {
    if (amount.free < amount.wanted && !(gpus_short && goes_with_gpus(shape, state, amount)))
      add(Obstacle{dimension});
  };
  const auto& request = shape.request();
  tell(Dimension::kCpus, {request.milli_cpus, state.free_milli_cpus, state.milli_cpus});
  tell(Dimension::kMemory,
       {static_cast<std::int64_t>(request.memory_bytes), state.free_memory, state.memory_bytes});
  return reasons;
}

}  // namespace drover::placement

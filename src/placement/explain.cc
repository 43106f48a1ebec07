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
  add(attribute_obstacle(view.node.attributes, shape));
  add(room_obstacle(view.state, shape)) || add(set_obstacle(view.state, shape));
  const auto& request = shape.request();
  if (view.state.free_milli_cpus < request.milli_cpus) add(Obstacle{Dimension::kCpus});
  if (view.state.free_memory < static_cast<std::int64_t>(request.memory_bytes))
    add(Obstacle{Dimension::kMemory});
  return reasons;
}

}  // namespace drover::placement

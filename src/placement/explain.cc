#include "placement/explain.h"

#include <algorithm>
#include <tuple>

namespace drover::placement {
namespace {

constexpr std::size_t kMostNotes = 4;  ///< different reasons to cordon, told apart

}  // namespace

void Explanation::add(const NodeView& view, const Obstacle& obstacle) {
  ++nodes_;
  // Nodes of one clause are counted together; what only one node has is added to the text in the end.
  Key key{obstacle, clause(shape_, obstacle, view, false)};
  if (!tallies_.contains(key)) {
    const auto same =
        std::ranges::count_if(tallies_, [&](const auto& entry) { return entry.first.obstacle == obstacle; });
    if (static_cast<std::size_t>(same) >= kMostNotes) key.note.clear();
  }
  auto& tally = tallies_[key];
  if (tally.nodes++ == 0) tally.first = view;
}

Reasons Explanation::reasons() const {
  if (nodes_ == 1) return about_one_node();
  Reasons reasons{.nodes = nodes_};
  if (nodes_ == 0) reasons.list.push_back({Dimension::kGpuCount, 0, "there are no nodes"});
  for (const auto& [key, tally] : tallies_)
    reasons.list.push_back(
        {key.obstacle.dimension, tally.nodes, clause(shape_, key.obstacle, tally.first, tally.nodes == 1)});
  // What most nodes lack comes first, and what only a person can change last.
  std::ranges::sort(reasons.list, {}, [](const Reason& reason) {
    return std::tuple(reason.dimension == Dimension::kCordon, -reason.nodes, reason.dimension, reason.text);
  });
  return reasons;
}

Reasons Explanation::about_one_node() const {
  const auto view = tallies_.begin()->second.first;
  Reasons reasons{.nodes = 1};
  const auto add = [&](const Obstacle& obstacle) {
    reasons.list.push_back({obstacle.dimension, 1, sentence(shape_, obstacle, view)});
  };
  if (view.state->cordoned) add({Dimension::kCordon, 0});
  if (const auto found = attribute_obstacle(view.node->attributes, shape_)) add(*found);
  if (const auto found = device_obstacle(*view.state, shape_)) add(*found);
  const auto& request = shape_.request();
  if (view.state->free_milli_cpus < request.milli_cpus) add({Dimension::kCpus, 0});
  if (view.state->free_memory < static_cast<std::int64_t>(request.memory_bytes)) add({Dimension::kMemory, 0});
  return reasons;
}

}  // namespace drover::placement

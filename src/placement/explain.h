#pragma once

// Why a request fits nowhere, from what keeps it off each node. Pure; deterministic.

#include <string>
#include <vector>

#include "placement/decision.h"
#include "placement/shape_view.h"

namespace drover::placement {

/// One node as the explanation sees it.
struct NodeView {
  const NodeState& state;
  const Node& node;
};
inline NodeView view_of(const NodeEntry& entry) {
  return {entry.state, *entry.node};
}

/// The reasons over all nodes, without remedies. `tallies` has every node once.
Reasons explain(const NodeTable& nodes, const Shape& shape, const std::vector<Tally>& tallies);
/// The same of one node, where the request does not fit: everything that is short is listed, but for CPUs and
/// memory that come free with GPUs that are short.
Reasons explain_node(const NodeView& view, const Shape& shape);

/// Texts: explain_text.cc. A clause that follows "1 " or "3 ", in the singular; with what the node has when
/// the clause is about it alone.
std::string clause(const Shape& shape, const Obstacle& obstacle, const NodeView& view, bool alone);
/// A sentence about the only node there is: "2 GPUs are wanted and 1 of 2 is free".
std::string sentence(const Shape& shape, const Obstacle& obstacle, const NodeView& view);

}  // namespace drover::placement

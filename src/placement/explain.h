#pragma once

// Why a request fits nowhere, from what kept it off each node. Pure; deterministic.

#include <map>
#include <string>

#include "placement/decision.h"
#include "placement/feasibility.h"

namespace drover::placement {

/// One node as the explanation sees it.
struct NodeView {
  const NodeState* state = nullptr;
  const Node* node = nullptr;
};

/// Counts nodes by what keeps them off. Nodes are added in their order.
class Explanation {
 public:
  explicit Explanation(const Shape& shape) : shape_(shape) {}

  void add(const NodeView& view, const Obstacle& obstacle);
  /// The reasons, without remedies. When one node was added, all dimensions that are short are listed.
  Reasons reasons() const;

 private:
  struct Tally {
    int nodes = 0;
    NodeView first;
  };
  struct Key {
    Obstacle obstacle;
    std::string note;  ///< tells apart what is one obstacle: why it is cordoned, none or too few
    auto operator<=>(const Key&) const = default;
  };

  Reasons about_one_node() const;

  const Shape& shape_;
  int nodes_ = 0;
  std::map<Key, Tally> tallies_;
};

/// Texts: explain_text.cc. A clause that follows "1 " or "3 ", in the singular.
std::string clause(const Shape& shape, const Obstacle& obstacle, const NodeView& view, bool only_node);
/// A sentence about the only node there is: "2 GPUs are wanted and 1 of 2 is free".
std::string sentence(const Shape& shape, const Obstacle& obstacle, const NodeView& view);

}  // namespace drover::placement

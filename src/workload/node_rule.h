#pragma once

// Where an instance of a service may be, by the labels of nodes, as the scheduler of a cluster is told it.

#include <string>
#include <vector>

namespace drover::workload {

enum class NodeRuleKind {
  kOneOf,     ///< the node has one of these values; of none: no node will do
  kNoneOf,    ///< it has none of these, or not the label at all
  kApart,     ///< no other instance of its set is on a node of the same value
  kTogether,  ///< all instances are on nodes of the same value
  kSpread,    ///< no value has more than one instance more than another
};

struct NodeRule {
  std::string label;  ///< "hostname" is the node's name
  NodeRuleKind kind = NodeRuleKind::kOneOf;
  std::vector<std::string> values = {};  ///< kOneOf, kNoneOf
  int number = 0;  ///< kApart: the set, counted from 1; 0: all are one. kSpread: so many values there are

  bool operator==(const NodeRule&) const = default;
};

}  // namespace drover::workload

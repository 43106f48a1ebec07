#pragma once

// The constraints of a service where the scheduler of a cluster keeps to them (constraints.h is the same for
// one machine). Pure.

#include <string>
#include <vector>

#include "control/constraints.h"
#include "control/draft.h"
#include "workload/node_rule.h"

namespace drover::control {

using NodeAttributes = std::vector<const MachineAttributes*>;

/// LIKE and UNLIKE are held against the values that `nodes` have now. `set`: of set_of().
std::vector<workload::NodeRule> node_rules(const std::vector<workload::PlacementConstraint>& constraints,
                                           const NodeAttributes& nodes, int set);
/// With the nodes that there are; none for what is no instance.
std::vector<workload::NodeRule> node_rules(const Draft& draft, const TaskRecord& record);

/// kUnsupported for what cannot be said by them.
Status check_node_rules(const workload::Service& service);

/// "At most N on nodes of the same value" is kept by N sets, of each of which no two are together: here the
/// set that has the fewest instances under way. 0: it needs none.
int set_of(const Draft& draft, const TaskRecord& record);

/// Ids of those who wait to be placed by rules that these nodes would change. Before they are the draft's.
std::vector<std::string> ruled_otherwise(const Draft& draft, const std::vector<placement::Node>& nodes);

}  // namespace drover::control

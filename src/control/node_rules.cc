#include "control/node_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "control/instances.h"

namespace drover::control {
namespace {

using workload::ConstraintKind;
using workload::NodeRule;
using workload::NodeRuleKind;
using workload::PlacementConstraint;

std::vector<std::string> values_alike(const PlacementConstraint& constraint, const NodeAttributes& nodes) {
  std::set<std::string> values;
  for (const auto* node : nodes)
    if (const auto found = node->find(constraint.attribute); found != node->end())
      values.insert(found->second.begin(), found->second.end());
  return alike(values, constraint.value);
}

NodeRule rule_of(const PlacementConstraint& constraint, const NodeAttributes& nodes, int set) {
  const auto& label = constraint.attribute;
  switch (constraint.kind) {
    case ConstraintKind::kUnique:
      return {label, NodeRuleKind::kApart};
    case ConstraintKind::kMaxPer:
      if (amount_in(constraint) <= 0) return {label};
      return {label, NodeRuleKind::kApart, {}, set};
    case ConstraintKind::kCluster:
      if (constraint.value.empty()) return {label, NodeRuleKind::kTogether};
      return {label, NodeRuleKind::kOneOf, {constraint.value}};
    case ConstraintKind::kGroupBy:
      return {label, NodeRuleKind::kSpread, {}, std::max(amount_in(constraint), 0)};
    case ConstraintKind::kIs:
      return {label, NodeRuleKind::kOneOf, {constraint.value}};
    case ConstraintKind::kLike:
      return {label, NodeRuleKind::kOneOf, values_alike(constraint, nodes)};
    case ConstraintKind::kUnlike:
      return {label, NodeRuleKind::kNoneOf, values_alike(constraint, nodes)};
  }
  return {label};
}

const workload::Service* service_of(const Draft& draft, const TaskRecord& record) {
  if (record.task.origin.kind != workload::OriginKind::kService) return nullptr;
  const auto* found = draft.services.find(record.task.origin.name);
  return found == nullptr ? nullptr : definition_of(*found, record);
}

const PlacementConstraint* sets_in(const workload::Service& service) {
  const auto found =
      std::ranges::find(service.constraints, ConstraintKind::kMaxPer, &PlacementConstraint::kind);
  return found == service.constraints.end() ? nullptr : &*found;
}

/// Whether it matters to them which nodes there are.
bool look_at_nodes(const workload::Service& service) {
  return std::ranges::any_of(service.constraints, [](const auto& constraint) {
    return constraint.kind == ConstraintKind::kLike || constraint.kind == ConstraintKind::kUnlike;
  });
}

NodeAttributes all_attributes(const std::vector<placement::Node>& nodes) {
  NodeAttributes attributes;
  for (const auto& node : nodes) attributes.push_back(&node.attributes);
  return attributes;
}

NodeAttributes nodes_of(const Draft& draft) {
  if (const auto* nodes = draft.new_nodes()) return all_attributes(*nodes);
  NodeAttributes nodes;
  const auto& state = draft.base();
  for (const auto& name : state.cluster.nodes())
    if (name != state.node) nodes.push_back(&state.cluster.node(name)->attributes);
  return nodes;
}

}  // namespace

std::vector<NodeRule> node_rules(const std::vector<PlacementConstraint>& constraints,
                                 const NodeAttributes& nodes, int set) {
  std::vector<NodeRule> rules;
  for (const auto& constraint : constraints) rules.push_back(rule_of(constraint, nodes, set));
  return rules;
}

std::vector<NodeRule> node_rules(const Draft& draft, const TaskRecord& record) {
  const auto* service = service_of(draft, record);
  if (service == nullptr || service->constraints.empty()) return {};
  return node_rules(service->constraints, look_at_nodes(*service) ? nodes_of(draft) : NodeAttributes(),
                    record.set);
}

Status check_node_rules(const workload::Service& service) {
  if (std::ranges::count(service.constraints, ConstraintKind::kMaxPer, &PlacementConstraint::kind) <= 1)
    return {};
  return fail(ErrorKind::kUnsupported,
              fmt::format("On a cluster '{}' may have one constraint MAX_PER", service.id),
              "leave out all but one", "/constraints");
}

int set_of(const Draft& draft, const TaskRecord& record) {
  const auto* service = service_of(draft, record);
  const auto* constraint = service == nullptr ? nullptr : sets_in(*service);
  const int sets = constraint == nullptr ? 0 : std::min(amount_in(*constraint), service->instances);
  if (sets <= 0) return 0;
  std::vector<int> members(static_cast<std::size_t>(sets));
  for (const auto* other : draft.tasks_of(origin_of(record.task)))
    if (other->task.id != record.task.id && is_under_way(*other) && other->set > 0 && other->set <= sets)
      ++members[static_cast<std::size_t>(other->set) - 1];
  return static_cast<int>(std::ranges::min_element(members) - members.begin()) + 1;
}

std::vector<std::string> ruled_otherwise(const Draft& draft, const std::vector<placement::Node>& nodes) {
  NodeAttributes before, now;
  std::map<const workload::Service*, bool> known;
  std::vector<std::string> ids;
  for (const auto& [sequence, queued] : draft.base().queue) {
    const auto& record = *draft.find(queued.id);
    const auto* service = record.asked ? service_of(draft, record) : nullptr;
    if (service == nullptr || !look_at_nodes(*service)) continue;
    const auto [found, is_new] = known.try_emplace(service);
    if (before.empty() && now.empty()) {
      before = nodes_of(draft);
      now = all_attributes(nodes);
    }
    if (is_new)
      found->second = node_rules(service->constraints, before, 0) != node_rules(service->constraints, now, 0);
    if (found->second) ids.push_back(queued.id);
  }
  return ids;
}

}  // namespace drover::control

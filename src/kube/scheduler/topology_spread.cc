#include "kube/scheduler/topology_spread.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "kube/scheduler/predicates.h"

namespace drover::kube::scheduler {
namespace {

bool has_every_key(const PodTemplate& pod, const Node& node) {
  return std::ranges::all_of(pod.spread, [&](const SpreadConstraint& constraint) {
    return label(node.labels, constraint.topology_key) != nullptr;
  });
}

/// Whether its pods, and the place that it makes, are counted.
bool is_counted_node(const SpreadConstraint& constraint, const PodTemplate& pod, const Node& node) {
  return has_every_key(pod, node) && (!constraint.by_node_affinity || selects_node(pod, node)) &&
         (!constraint.by_taints || untolerated(*node.taints, pod.tolerations) == nullptr);
}

/// A selector of everything counts nothing, as upstream has it.
std::int64_t count_pods(const NodeState& state, const std::string& name_space, const Selector& selector,
                        std::unordered_map<const Labels*, bool>& selected) {
  if (selector.everything()) return 0;
  return std::ranges::count_if(state.pods, [&](const auto& item) {
    const auto& pod = *item.second;
    if (pod.terminating || pod.name_space != name_space) return false;
    const auto [known, is_new] = selected.try_emplace(pod.labels.get());
    if (is_new) known->second = matches(selector, *pod.labels);
    return known->second;
  });
}

}  // namespace

TopologySpread::TopologySpread(const Cluster& cluster, const Pod& pod) {
  for (const auto& constraint : pod.made_from->spread) spreads_.push_back(spread(cluster, pod, constraint));
}

TopologySpread::Spread TopologySpread::spread(const Cluster& cluster, const Pod& pod,
                                              const SpreadConstraint& constraint) {
  Spread spread{&constraint};
  std::unordered_map<const Labels*, bool> selected;
  for (const auto& [name, state] : cluster.nodes()) {
    if (!state.node || !is_counted_node(constraint, *pod.made_from, *state.node)) continue;
    spread.pods[*label(state.node->labels, constraint.topology_key)] +=
        count_pods(state, pod.name_space, constraint.selector, selected);
  }
  // Too few places: one that is empty may still come.
  if (!spread.pods.empty() && std::cmp_greater_equal(spread.pods.size(), constraint.least_domains))
    spread.least =
        std::ranges::min_element(spread.pods, {}, [](const auto& place) { return place.second; })->second;
  spread.counts_itself = matches(constraint.selector, *pod.labels);
  return spread;
}

std::string_view TopologySpread::refusal(const Node& node) const {
  for (const auto& [constraint, pods, least, counts_itself] : spreads_) {
    const auto* const value = label(node.labels, constraint->topology_key);
    if (value == nullptr)
      return "node(s) didn't match pod topology spread constraints (missing required label)";
    const auto place = pods.find(*value);
    const auto here = (place == pods.end() ? 0 : place->second) + (counts_itself ? 1 : 0);
    if (here - least > constraint->most_skew) return "node(s) didn't match pod topology spread constraints";
  }
  return "";
}

}  // namespace drover::kube::scheduler

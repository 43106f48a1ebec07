#include "kube/scheduler/pod_affinity.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace drover::kube::scheduler {
namespace {

/// A term of the pod that is to be placed: its namespaces are those that exist now.
class OwnTerm {
 public:
  OwnTerm(const Cluster& cluster, const PodTerm& term) : term_(term), namespaces_(term.namespaces) {
    for (const auto& [name, labels] : cluster.namespaces())
      if (matches(term.namespace_selector, labels)) namespaces_.insert(name);
  }

  bool selects(const Pod& pod) {
    if (!term_.namespace_selector.everything() && !namespaces_.contains(pod.name_space)) return false;
    const auto [known, is_new] = selected_.try_emplace(pod.labels.get());
    if (is_new) known->second = matches(term_.selector, *pod.labels);
    return known->second;
  }

  const std::string& key() const { return term_.topology_key; }

 private:
  const PodTerm& term_;
  std::set<std::string> namespaces_;
  std::unordered_map<const Labels*, bool> selected_;  ///< pods of one template share theirs
};

std::vector<OwnTerm> own_terms(const Cluster& cluster, const std::vector<PodTerm>& terms) {
  std::vector<OwnTerm> own;
  for (const auto& term : terms) own.emplace_back(cluster, term);
  return own;
}

bool all_select(std::vector<OwnTerm>& terms, const Pod& pod) {
  return !terms.empty() && std::ranges::all_of(terms, [&](OwnTerm& term) { return term.selects(pod); });
}

template <typename Places>
void add_place(Places& places, const std::string& key, const Node& node) {
  if (const auto* const value = label(node.labels, key)) places[key].insert(*value);
}

}  // namespace

PodAffinity::PodAffinity(const Cluster& cluster, const Pod& pod) : wants_(*pod.made_from) {
  static const Labels no_labels;
  const auto name_space = cluster.namespaces().find(pod.name_space);
  const auto& namespace_labels = name_space == cluster.namespaces().end() ? no_labels : name_space->second;
  for (const auto& [term, holders] : cluster.anti_affinity()) {
    if (!term.namespaces.contains(pod.name_space) && !matches(term.namespace_selector, namespace_labels))
      continue;
    if (!matches(term.selector, *pod.labels)) continue;
    for (const auto& [state, count] : holders)
      if (state->node) add_place(shunned_, term.topology_key, *state->node);
  }
  if (!wants_.affinity.empty() || !wants_.anti_affinity.empty()) look_at_pods(cluster, pod);
}

void PodAffinity::look_at_pods(const Cluster& cluster, const Pod& pod) {
  auto affinity = own_terms(cluster, wants_.affinity);
  auto anti_affinity = own_terms(cluster, wants_.anti_affinity);
  for (const auto& [name, state] : cluster.nodes()) {
    if (!state.node) continue;
    for (const auto& [uid, other] : state.pods) {
      if (all_select(affinity, *other))
        for (const auto& term : affinity) add_place(liked_, term.key(), *state.node);
      for (auto& term : anti_affinity)
        if (term.selects(*other)) add_place(disliked_, term.key(), *state.node);
    }
  }
  may_be_first_ = liked_.empty() && all_select(affinity, pod);
}

bool PodAffinity::is_in(const Places& places, const Node& node) {
  return std::ranges::any_of(places, [&](const auto& place) {
    const auto* const value = label(node.labels, place.first);
    return value != nullptr && place.second.contains(*value);
  });
}

std::string_view PodAffinity::refusal(const Node& node) const {
  bool near = true;
  for (const auto& term : wants_.affinity) {
    const auto* const value = label(node.labels, term.topology_key);
    if (value == nullptr) return "node(s) didn't match pod affinity rules";
    const auto places = liked_.find(term.topology_key);
    near = near && places != liked_.end() && places->second.contains(*value);
  }
  if (!near && !may_be_first_) return "node(s) didn't match pod affinity rules";
  if (is_in(disliked_, node)) return "node(s) didn't match pod anti-affinity rules";
  if (is_in(shunned_, node)) return "node(s) didn't satisfy existing pods anti-affinity rules";
  return "";
}

}  // namespace drover::kube::scheduler

#include "kube/scheduler/eligible_nodes.h"

#include <algorithm>
#include <utility>

#include "kube/scheduler/predicates.h"

namespace drover::kube::scheduler {
namespace {

using placement::Eligibility;

constexpr std::size_t kMostChanges = 4096;

std::size_t number_of(std::vector<std::string>& reasons, std::string_view reason) {
  const auto found = std::ranges::find(reasons, reason);
  if (found != reasons.end()) return static_cast<std::size_t>(found - reasons.begin());
  reasons.emplace_back(reason);
  return reasons.size() - 1;
}

}  // namespace

void EligibleNodes::note_node(const std::string& name) {
  changes_.push_back(name);
  if (changes_.size() <= kMostChanges) return;
  changes_.clear();
  for (auto& [key, entry] : entries_) entry.seen = 0;
  note_all();
}

/// Whether pods elsewhere, or pods' relations to each other, decide.
bool EligibleNodes::looks_at_others(const PodTemplate& made_from) const {
  return !made_from.affinity.empty() || !made_from.anti_affinity.empty() || !made_from.spread.empty() ||
         !made_from.volume_claims.empty() || !cluster_.anti_affinity().empty();
}

std::shared_ptr<const Eligibility> EligibleNodes::of(const Pod& pod) {
  auto& entry = entries_[{pod.made_from.get(), pod.labels.get(), pod.name_space}];
  entry.used = true;
  const bool unchanged = entry.seen == changes_.size() && entry.everything == everything_;
  if (entry.nodes && unchanged) return entry.nodes;
  // Also what pods elsewhere have kept it off, and do no more.
  const bool others_before = std::exchange(entry.others, looks_at_others(*pod.made_from));
  const bool at_all = !entry.nodes || entry.everything != everything_ || entry.others || others_before;
  if (!entry.nodes) {
    entry.made_from = pod.made_from;
    entry.labels = pod.labels;
  }
  look(pod, entry, at_all);
  entry.everything = everything_;
  entry.seen = changes_.size();
  return entry.nodes;
}

void EligibleNodes::look(const Pod& pod, Entry& entry, bool at_all) const {
  const Predicates predicates(cluster_, pod);
  Eligibility found = at_all || !entry.nodes ? Eligibility{} : *entry.nodes;
  bool changed = !entry.nodes;
  const auto look_at = [&](const std::string& name, const NodeState& state) {
    const auto verdict = predicates.check(state);
    const auto before = found.refused.find(name);
    if (verdict.fits()) {
      if (before == found.refused.end()) return;
      found.refused.erase(before);
      changed = true;
      return;
    }
    const auto& reason = verdict.reasons.front();
    if (before != found.refused.end() && found.reasons[before->second] == reason) return;
    found.refused.insert_or_assign(name, number_of(found.reasons, reason));
    changed = true;
  };
  if (at_all) {
    for (const auto& [name, state] : cluster_.nodes()) look_at(name, state);
    changed = !entry.nodes || entry.nodes->refused != found.refused || entry.nodes->reasons != found.reasons;
  } else {
    const std::set<std::string> names(changes_.begin() + static_cast<std::ptrdiff_t>(entry.seen),
                                      changes_.end());
    for (const auto& name : names)
      if (const auto state = cluster_.nodes().find(name); state != cluster_.nodes().end())
        look_at(name, state->second);
  }
  if (changed) entry.nodes = std::make_shared<const Eligibility>(std::move(found));
}

void EligibleNodes::sweep() {
  std::erase_if(entries_, [](const auto& entry) { return !entry.second.used; });
  for (auto& [key, entry] : entries_) entry.used = false;
}

}  // namespace drover::kube::scheduler

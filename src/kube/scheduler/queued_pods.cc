// Pods that another scheduler binds, and that wait in our queues until it may.

#include <algorithm>
#include <utility>

#include "kube/scheduler/scheduler.h"

namespace drover::kube::scheduler {
namespace {

constexpr const char* kOtherDoor =
    "make it anew for kube-scheduler, with the scheduling gate 'drover.dev/queue'";

}  // namespace

/// What we do not decide on is the other scheduler's to know. One whose gate was opened takes its room as if
/// it was bound.
void Scheduler::enter_by_gate(Known& known, Pod& pod) {
  auto made = *pod.made_from;
  std::erase(made.scheduling_gates, kQueueGate);
  if (pod.node_name.empty()) {
    made.unsupported.clear();
    made.volume_claims.clear();
  }
  pod.made_from = std::make_shared<const PodTemplate>(std::move(made));
  if (!pod.node_name.empty() || pod.release.gated) return;
  known.node = pod.release.expected_node;
  known.decided = !known.node.empty();
}

/// From now on it takes nothing, and nobody plans it.
void Scheduler::lapse(Known& known) {
  auto made = *known.object.pod.made_from;
  made.scheduling_gates = {kQueueGate};
  known.object.pod.made_from = templates_.share(std::make_shared<const PodTemplate>(std::move(made)));
  known.node.clear();
  known.gpus.clear();
  known.decided = false;
  known.lapsed = true;
}

/// Room is kept for a while only: others could use it.
void Scheduler::end_holds(TimePoint now, Round& round) {
  for (const auto& uid : std::exchange(held_, {})) {
    const auto found = pods_.find(uid);
    if (found == pods_.end() || !found->second.decided) continue;
    auto& known = found->second;
    const auto& pod = known.object.pod;
    const auto at = pod.release.at;
    const auto end = at + options_.release_grace;
    const bool is_credible = at <= now + options_.release_grace;  // clocks may differ a little
    if (at == TimePoint{} || (now < end && is_credible)) {
      if (at != TimePoint{}) round.retry_at = std::min(round.retry_at.value_or(end), end);
      held_.insert(uid);
      continue;
    }
    round.lapses.push_back({name_of(pod), known.node});
    give_back(uid, known);
    lapse(known);
    take(uid, known);
  }
}

/// For pods that use what we do not decide on.
void Scheduler::tell_of_the_other_door(placement::Reasons& reasons) {
  if (std::ranges::any_of(reasons.list, [](const auto& reason) { return reason.text.starts_with("uses "); }))
    reasons.remedies.emplace_back(kOtherDoor);
}

}  // namespace drover::kube::scheduler

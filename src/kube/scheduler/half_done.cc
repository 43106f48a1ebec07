// What earlier tries have left half done, perhaps those of another scheduler: it is finished where it still
// can be, and undone where not.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/scheduler/scheduler.h"

namespace drover::kube::scheduler {

void Scheduler::undo(LeftClaim left, Round& round) {
  auto& known = pods_.at(left.pod.uid);
  ++known.undoing;
  known.until_undone = true;
  round.left_claims.push_back(std::move(left));
}

void Scheduler::undone(const LeftClaim& left, TimePoint until) {
  changed_ = true;
  if (const auto found = pods_.find(left.pod.uid); found != pods_.end()) {
    auto& known = found->second;
    known.undoing = std::max(known.undoing - 1, 0);
    if (known.until_undone) known.not_before = until;
  }
  if (left.made || !decided_claims_.contains(left.uid)) return;
  forget_decided(left.uid, left.pod.uid);
  follow_claim(left.uid);
  note_undone(left.pod.uid);
}

/// Its claims are as they should be: it need not wait longer than for that.
void Scheduler::note_undone(const std::string& pod_uid) {
  const auto found = pods_.find(pod_uid);
  if (found != pods_.end() && std::exchange(found->second.until_undone, false)) found->second.not_before = {};
}

/// As long as there is one it is not planned: what has it may be what it needs.
bool Scheduler::has_left_claims(const std::string& uid, Round& round) {
  drop_claim_to_come(uid);  // nobody knows whether it was made: it would be here by now
  const auto left = claims_.made_for(pods_.at(uid).object.pod);
  if (left.empty()) return false;
  const auto name = left.front()->name;
  for (const auto* claim : left)
    undo({name_of(pods_.at(uid).object.pod), claim->name, claim->uid, true}, round);
  hold({uid}, placement::Dimension::kHeld,
       fmt::format("waits until its claim '{}' of an earlier try is deleted", name), round);
  return true;
}

/// Where its devices are it cannot run: it may get others.
void Scheduler::give_up_claims(const std::string& uid, Round& round) {
  const auto& known = pods_.at(uid);
  if (known.undoing > 0 || !known.node.empty()) return;
  const auto& pod = known.object.pod;
  for (const auto& reference : pod.claims)
    if (const auto* const claim = claims_.pools().claim(pod.name_space, reference.claim);
        claim != nullptr && is_reserved_for(*claim, uid))
      undo({name_of(pod), claim->name, claim->uid, false}, round);
}

/// All or, when one of them could not be ended a moment ago, none. `why` names no pod yet.
void Scheduler::evict(const std::vector<std::string>& uids, Eviction why, TimePoint now, Round& round) {
  for (const auto& uid : uids)
    if (const auto until = pods_.at(uid).not_before; until > now) {
      round.retry_at = std::min(round.retry_at.value_or(until), until);
      return;
    }
  for (const auto& uid : uids) {
    auto& known = pods_.at(uid);
    known.evicted = true;
    budgets_.set_ending(uid, true);
    bound_.put(uid, bound_pod(known));
    why.pod = name_of(known.object.pod);
    if (const auto winner = pods_.find(why.winner.uid); winner != pods_.end())
      why.lent = winner->second.object.pod.made_from->priority <= known.object.pod.made_from->priority;
    round.evictions.push_back(why);
  }
}

/// A gang that was whole once, and has lost some, goes on: who waits for it has come after the others had
/// their nodes. Of one that never was, what is bound waits in vain.
void Scheduler::end_half_gangs(TimePoint now, Round& round) {
  for (const auto& gang : half_gangs_) {
    const auto view = gangs_.view(gang);
    if (!view.half || view.together.empty()) continue;
    auto first = TimePoint::max(), last = TimePoint::min();
    bool is_known = true;
    for (const auto& uid : view.bound) {
      const auto& known = pods_.at(uid);
      const auto bound = known.object.pod.bound;
      is_known = is_known && bound != TimePoint{} && !known.evicted;
      first = std::min(first, bound);
      last = std::max(last, bound);
    }
    const auto is_later = [&](const std::string& uid) { return pods_.at(uid).object.pod.created > first; };
    if (!is_known || std::ranges::any_of(view.together, is_later)) continue;
    if (const auto due = last + options_.half_gang_grace; now < due)
      round.retry_at = std::min(round.retry_at.value_or(due), due);
    else
      evict(view.bound, {.job = job_id(pods_.at(view.bound.front()).object), .half_gang = true}, now, round);
  }
}

}  // namespace drover::kube::scheduler

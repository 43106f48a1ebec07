// What those who wait are told.

#include <algorithm>
#include <utility>

#include "kube/scheduler/remedies.h"
#include "kube/scheduler/scheduler.h"

namespace drover::kube::scheduler {
namespace {

/// Queues are told of as their objects are named.
void name_queues(placement::Reasons& reasons) {
  for (auto& reason : reasons.list)
    if (reason.dimension == placement::Dimension::kQueueLimit) reason.text = queue_name(reason.text);
}

}  // namespace

std::vector<Scheduler::Waiter> Scheduler::waiters(const Round& round) {
  std::unordered_map<std::string, const placement::Job*> planned;  // by the uids of its pods
  for (const auto& job : left_.jobs)
    for (const auto& uid : left_.pods.at(job.id)) planned.emplace(uid, &job);
  Rehearsal rehearsal(*this);
  std::map<std::string, std::size_t> lengths;  // of queues, in jobs
  std::map<std::string, std::size_t> places;   // of jobs
  std::set<std::string> spoken;
  std::vector<std::pair<Waiter, std::string>> told;
  const auto tell = [&](const std::string& uid) {
    const auto found = pods_.find(uid);
    if (found == pods_.end()) return;
    const auto& object = found->second.object;
    const auto job = planned.find(uid);
    const bool in_line = job != planned.end();
    auto queue = in_line ? job->second->queue : queue_of(found->second);
    Waiter waiter{name_of(object.pod), {.reasons = round.waiting.at(uid), .nodes = places_.size()}};
    name_queues(waiter.why.reasons);
    waiter.why.queue = queue == placement::kDefaultQueue ? "" : queue_name(queue);
    if (in_line) {
      const auto [place, is_new] = places.try_emplace(job->second->id);
      if (is_new) place->second = ++lengths[queue];
      waiter.why.place = place->second;
      rehearsal.add_remedies(*job->second, waiter.why.reasons);
    }
    waiter.job = in_line && job->second->id == uid ? uid : job_id(object);
    waiter.speaks = spoken.insert(waiter.job).second;
    waiter.gated = found->second.queued;
    if (waiter.speaks && object.gang) waiter.group = gangs_.object_of(object.gang->gang);
    told.emplace_back(std::move(waiter), std::move(queue));
  };
  std::ranges::for_each(round.order, tell);
  std::ranges::for_each(round.held, tell);
  std::vector<Waiter> waiters;
  waiters.reserve(told.size());
  for (auto& [waiter, queue] : told) {
    if (waiter.why.place > 0) waiter.why.of = lengths.at(queue);
    waiters.push_back(std::move(waiter));
  }
  return waiters;
}

std::vector<Scheduler::Group> Scheduler::started_groups() const {
  std::vector<Group> groups;
  for (const auto& gang : gangs_.of_kind(GangKind::kPodGroup)) {
    const auto view = gangs_.view(gang);
    if (view.bound.empty()) continue;
    auto object = gangs_.object_of(gang);
    if (!object) continue;
    const auto is = [&](bool Known::* what) {
      return [&, what](const std::string& uid) { return pods_.at(uid).*what; };
    };
    if (std::ranges::any_of(view.bound, is(&Known::evicted)) && !view.half)
      groups.push_back({std::move(*object), GangOutcome::kPreempted});
    else if (view.reason.empty() && view.together.empty() && !view.half &&
             std::ranges::none_of(view.bound, is(&Known::decided)))
      groups.push_back({std::move(*object), GangOutcome::kScheduled});
  }
  return groups;
}

std::string Scheduler::uid_of(std::string_view name_space, std::string_view name) const {
  const auto found = std::ranges::find_if(pods_, [&](const auto& known) {
    const auto& pod = known.second.object.pod;
    return pod.name_space == name_space && pod.name == name;
  });
  return found == pods_.end() ? "" : found->first;
}

const PodObject* Scheduler::find_pod(const std::string& uid) const {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : &found->second.object;
}

std::string Scheduler::node_of(const std::string& uid) const {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? "" : found->second.node;
}

std::vector<std::string> Scheduler::gpus_of(const std::string& uid) const {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second.node.empty()) return {};
  const auto& known = found->second;
  std::vector<std::string> gpus;
  // Of others', and before a pod says so, they are only guessed.
  if (names_gpus(known.node)) gpus = known.decided ? known.gpus : known.object.pod.gpus;
  for (auto& grant : claimed_gpus(known))
    if (std::ranges::find(gpus, grant.uuid) == gpus.end()) gpus.push_back(std::move(grant.uuid));
  return gpus;
}

}  // namespace drover::kube::scheduler

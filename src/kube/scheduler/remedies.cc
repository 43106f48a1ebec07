#include "kube/scheduler/remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "kube/scheduler/wishes.h"
#include "placement/awaited.h"
#include "placement/weaker.h"

namespace drover::kube::scheduler {
namespace {

constexpr std::size_t kMostTold = 3;
constexpr std::size_t kMostPlans = 200;
constexpr std::size_t kMostPlanned = 20'000;  ///< jobs that plans look at
constexpr std::size_t kMostLooks = 500'000;   ///< at nodes: whether a pod fits there
constexpr std::size_t kByRules = 10;          ///< looks that one takes that asks all rules

}  // namespace

Scheduler::Rehearsal::Rehearsal(Scheduler& scheduler)
    : scheduler_(scheduler),
      plans_left_(std::min(
          kMostPlans, kMostPlanned / (scheduler.left_.jobs.size() + scheduler.bound_.running().size() + 1))),
      looks_left_(kMostLooks) {
  scheduler_.bound_.sync(scheduler_.places_);
}

void Scheduler::Rehearsal::add_remedies(const placement::Job& job, placement::Reasons& reasons) {
  using placement::Dimension;
  // Who is held to a limit, or waits for the end of others, has been told what there is to say.
  const auto is_for = [&](std::initializer_list<Dimension> dimensions) {
    return std::ranges::any_of(reasons.list, [&](const placement::Reason& reason) {
      return std::ranges::find(dimensions, reason.dimension) != dimensions.end();
    });
  };
  if (is_for({Dimension::kQuota, Dimension::kQueueLimit})) return;
  if (first_.empty()) first_ = job.id;
  if (is_for({Dimension::kPreemption})) return;
  const auto is_there = [this](const std::string& uid) { return scheduler_.pods_.contains(uid); };
  if (!std::ranges::all_of(scheduler_.left_.pods.at(job.id), is_there)) return;
  auto& known = scheduler_.remedies_;
  auto found = known.find(job.id);
  if (found == known.end()) found = known.emplace(job.id, find(job)).first;
  for (const auto& remedy : found->second)
    if (reasons.remedies.size() < kMostTold) reasons.remedies.push_back(remedy);
}

/// At all nodes.
bool Scheduler::Rehearsal::may_look(std::size_t times) {
  const auto looks = times * scheduler_.places_.size();
  if (looks_left_ < looks) return false;
  looks_left_ -= looks;
  return true;
}

std::vector<std::string> Scheduler::Rehearsal::find(const placement::Job& job) {
  std::vector<std::string> found;
  if (job.id != first_ && (plans_left_ == 0 || looks_left_ < scheduler_.places_.size())) return found;
  give_up_wishes(job, found);
  ask_for_less(job, found);
  if (found.empty() && scheduler_.gone_nodes_.empty() && may_look(kByRules) &&
      !placement::try_place(scheduler_.places_, job.gang))
    if (auto wait = placement::awaited(scheduler_.places_, job.gang); !wait.empty())
      found.push_back(std::move(wait));
  return found;
}

void Scheduler::Rehearsal::give_up_wishes(const placement::Job& job, std::vector<std::string>& found) {
  const auto topology = topology_of(job);
  const auto try_it = [&](const auto& give_up, const std::string& topology_key, const auto& remedy) {
    if (found.size() >= kMostTold) return;
    const auto gang = gang_without(job, give_up, topology_key);
    if (!gang) return;
    if (const auto decisions = start_of(job, *gang)) found.push_back(remedy(decisions->front().node));
  };
  const auto& first = scheduler_.pods_.at(scheduler_.left_.pods.at(job.id).front());
  const auto rest = first.rest;
  for (const auto& wish : wishes_of(*rest, scheduler_.cluster_)) try_it(wish.give_up, topology, wish.remedy);
  if (topology.empty()) return;
  try_it([](PodTemplate&) {}, "",
         [&](const std::string&) {
           return fmt::format("let the gang go to several domains of the topology '{}'", topology);
         });
}

void Scheduler::Rehearsal::ask_for_less(const placement::Job& job, std::vector<std::string>& found) {
  if (found.size() >= kMostTold) return;
  // What is given by claims is asked for there.
  const auto claims = [&](const std::string& uid) {
    const auto& pod = scheduler_.pods_.at(uid).object.pod;
    return !pod.claims.empty() || scheduler_.claims_.may_need_claim(*pod.made_from);
  };
  if (std::ranges::any_of(scheduler_.left_.pods.at(job.id), claims)) return;
  const auto weaker = placement::weaker_that_start(
      scheduler_.places_, job.gang,
      [&](const placement::Gang& gang) -> std::optional<Decisions> {
        const auto whole = [](const auto& member) { return member.share.whole(); };
        if (!std::ranges::all_of(gang.members, whole)) return std::nullopt;
        return start_of(job, gang);
      },
      kMostTold - found.size());
  for (const auto& one : weaker) found.push_back(one.remedy);
}

std::string Scheduler::Rehearsal::topology_of(const placement::Job& job) const {
  const auto& object = scheduler_.pods_.at(scheduler_.left_.pods.at(job.id).front()).object;
  return object.gang && job.id != object.pod.uid ? scheduler_.gangs_.view(object.gang->gang).topology_key
                                                 : "";
}

std::optional<placement::Gang> Scheduler::Rehearsal::gang_without(
    const placement::Job& job, const std::function<void(PodTemplate&)>& give_up,
    const std::string& topology_key) {
  auto gang = job.gang;
  const auto& uids = scheduler_.left_.pods.at(job.id);
  std::map<std::shared_ptr<const PodTemplate>, std::shared_ptr<const PodTemplate>> made;
  for (std::size_t rank = 0; rank < uids.size(); ++rank) {
    auto known = scheduler_.pods_.at(uids[rank]);
    auto& changed = made[known.object.pod.made_from];
    if (!changed) {
      if (!may_look(kByRules)) return std::nullopt;
      auto copy = *known.object.pod.made_from;
      give_up(copy);
      changed = std::make_shared<const PodTemplate>(std::move(copy));
    }
    known.object.pod.made_from = changed;
    known.rest = scheduler_.templates_.share(
        std::make_shared<const PodTemplate>(without_demand(*changed, scheduler_.options_.gpu_resource)));
    auto demand = scheduler_.demand_now(known);
    if (!demand) return std::nullopt;
    gang.members[rank] = std::move(*demand);
  }
  if (!topology_key.empty()) scheduler_.keep_in_one_domain(gang, topology_key);
  return gang;
}

std::optional<Scheduler::Rehearsal::Decisions> Scheduler::Rehearsal::start_of(
    const placement::Job& job, const placement::Gang& instead) {
  if (!may_look(1)) return std::nullopt;
  auto placed = placement::try_place(scheduler_.places_, instead);
  if (!placed) return std::nullopt;
  auto& jobs = scheduler_.left_.jobs;
  const auto same = std::ranges::find(jobs, job.id, &placement::Job::id);
  if (job.id == first_) return placed;  // nothing is kept from it
  if (plans_left_ == 0) return std::nullopt;
  --plans_left_;
  auto before = std::exchange(same->gang, instead);
  auto plan =
      placement::plan(scheduler_.places_, scheduler_.sharing_.rules, jobs, scheduler_.bound_.running(),
                      scheduler_.decided_at_, *scheduler_.budgets_.budgets());
  same->gang = std::move(before);
  for (auto& start : plan.starts)
    if (start.job == job.id) return std::move(start.decisions);
  return std::nullopt;
}

}  // namespace drover::kube::scheduler

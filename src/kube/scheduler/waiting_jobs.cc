// What waits, as jobs that placement knows.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/scheduler/gpu_request.h"
#include "kube/scheduler/scheduler.h"

namespace drover::kube::scheduler {
namespace {

using placement::Dimension;
using placement::Eligibility;
using placement::Job;

constexpr const char* kOtherDomain = "node(s) were in other topology domains than the rest of the gang";

constexpr const char* kOwnGate =
    "has the scheduling gate 'drover.dev/queue', which is for pods that another scheduler binds: leave it "
    "out";

/// The order of arrival, as far as the API server tells: to the second, and then any order that stays.
std::uint64_t sequence_of(const Pod& pod) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(pod.created).time_since_epoch().count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(seconds, 0)) << 32 |
         std::hash<std::string>()(pod.uid) >> 32;
}

/// The same, on nodes of the domain only.
std::shared_ptr<const Eligibility> within(const std::shared_ptr<const Eligibility>& eligibility,
                                          const Cluster& cluster, const std::string& key,
                                          const std::string& value) {
  Eligibility narrowed = *eligibility;
  const auto other = narrowed.reasons.size();
  narrowed.reasons.emplace_back(kOtherDomain);
  for (const auto& [name, state] : cluster.nodes()) {
    const auto* const found = state.node ? label(state.node->labels, key) : nullptr;
    if (found == nullptr || *found != value) narrowed.refused.emplace(name, other);
  }
  return std::make_shared<const Eligibility>(std::move(narrowed));
}

/// What an annotation says of the GPUs that claims are to give.
Status add_wishes(const placement::Request& wishes, placement::Request& demand) {
  if (wishes.gpu_count() != demand.gpu_count())
    return fail(ErrorKind::kInvalid,
                fmt::format("The annotation '{}' is of {} GPUs, and its claims ask for {}",
                            kGpuRequestAnnotation, wishes.gpu_count(), demand.gpu_count()));
  demand.gpus = wishes.gpus;
  demand.different_models = wishes.different_models;
  demand.interconnect = wishes.interconnect;
  return {};
}

}  // namespace

/// Under which pods of one gang are one job.
std::string job_id(const PodObject& object) {
  if (!object.gang) return object.pod.uid;
  const auto& gang = object.gang->gang;
  return fmt::format("{}:{}/{}", static_cast<int>(gang.kind), gang.name_space, gang.name);
}

std::string Scheduler::queue_of(const Known& known) const {
  auto names = known.object.queues;
  if (names.own.empty() && known.object.gang) names.own = gangs_.queue_of(known.object.gang->gang);
  static const QueueNames kNone;
  const auto found = namespace_queues_.find(known.object.pod.name_space);
  return scheduler::queue_of(sharing_, names, found == namespace_queues_.end() ? kNone : found->second);
}

Job Scheduler::job_of(const Known& known, const std::string& queue) const {
  const auto& pod = known.object.pod;
  Job job;
  job.id = job_id(known.object);
  job.user = job.name_space = pod.name_space;
  job.queue = queue;
  job.priority = static_cast<int>(pod.made_from->priority);
  job.sequence = sequence_of(pod);
  job.time_limit = pod.time_limit;
  return job;
}

Result<placement::Request> Scheduler::demand_now(const Known& known) {
  const auto& pod = known.object.pod;
  auto rest = pod;
  rest.made_from = known.rest;
  auto demand = known.demand;
  demand.eligibility = eligible_.of(rest);
  const bool may_need_claim = claims_.may_need_claim(*pod.made_from);
  if (pod.claims.empty() && !may_need_claim) return demand;
  DROVER_TRY(const auto claims, claims_.claims_of(pod));
  auto found = claims_.narrow(demand.eligibility, cluster_,
                              {.claims = claims,
                               .by_limits = may_need_claim ? pod.made_from : nullptr,
                               .gpu_resource = options_.gpu_resource,
                               .admin_access = lets_admins(pod.name_space)});
  if (!found && known.queued) return demand;  // whoever binds it may know better
  DROVER_TRY(auto needs, std::move(found));
  demand.eligibility = std::move(needs.nodes);
  if (needs.gpus > 0) {
    if (demand.gpus.empty()) demand.share = needs.share;
    demand.gpus = {{demand.gpu_count() + needs.gpus, {}}};
    if (known.of_claims) DROVER_CHECK_OK(add_wishes(*known.of_claims, demand));
  }
  const auto* const common = common_claim(known);
  return common == nullptr ? demand : demand_of_common(std::move(demand), *common);
}

void Scheduler::look_ahead() {
  for (const auto& uid : waiting_) static_cast<void>(demand_now(pods_.at(uid)));
}

/// Else it is said why not, or it is left out for a while.
bool Scheduler::may_wait(const std::string& uid, const std::string& queue, TimePoint now, Round& round) {
  const auto& known = pods_.at(uid);
  if (known.undoing > 0) return false;
  if (known.not_before > now) {
    round.retry_at = std::min(round.retry_at.value_or(known.not_before), known.not_before);
    return false;
  }
  if (has_left_claims(uid, round)) return false;
  const auto& pod = known.object.pod;
  auto why = known.object.mistake;
  if (why.empty())
    if (const auto may = may_stand(sharing_, queue, pod.name_space, pod.made_from->priority); !may)
      why = to_string(may.error());
  if (why.empty()) return true;
  hold({uid}, Dimension::kHeld, why, round);
  return false;
}

Scheduler::Waiting Scheduler::waiting_jobs(TimePoint now, Round& round) {
  Waiting waiting;
  half_gangs_.clear();
  std::set<GangIdentity> gangs;
  for (const auto& uid : waiting_) {
    const auto& known = pods_.at(uid);
    if (const auto& gates = known.object.pod.made_from->scheduling_gates; !gates.empty()) {
      if (!known.queued && gates == std::vector<std::string>{kQueueGate})
        hold({uid}, Dimension::kHeld, kOwnGate, round);
      continue;
    }
    if (known.object.gang) {
      gangs.insert(known.object.gang->gang);
      continue;
    }
    const auto queue = queue_of(known);
    if (!may_wait(uid, queue, now, round)) continue;
    add_job(job_of(known, queue), {uid}, waiting, round);
  }
  for (const auto& gang : gangs) add_gang(gang, now, waiting, round);
  // Each has a number of its own.
  std::ranges::sort(waiting.jobs, {}, [](const Job& job) { return std::tie(job.sequence, job.id); });
  for (std::size_t i = 1; i < waiting.jobs.size(); ++i)
    waiting.jobs[i].sequence = std::max(waiting.jobs[i].sequence, waiting.jobs[i - 1].sequence + 1);
  return waiting;
}

void Scheduler::add_gang(const GangIdentity& gang, TimePoint now, Waiting& waiting, Round& round) {
  const auto view = gangs_.view(gang);
  if (!view.reason.empty()) {
    std::vector<std::string> all;
    std::ranges::copy_if(waiting_, std::back_inserter(all), [&](const std::string& uid) {
      const auto* const of = gangs_.gang_of(uid);
      return of != nullptr && *of == gang;
    });
    return hold(all, Dimension::kGang, view.reason, round);
  }
  const auto& uids = view.together.empty() ? view.later : view.together;
  if (uids.empty()) return;
  if (view.half) half_gangs_.push_back(gang);
  const auto queue = queue_of(pods_.at(uids.front()));
  for (const auto& uid : uids)
    if (!may_wait(uid, queue, now, round)) return;
  if (view.together.empty()) {  // the gang runs: each starts for itself
    for (const auto& uid : view.later) {
      auto job = job_of(pods_.at(uid), queue);
      job.id = uid;
      add_job(std::move(job), {uid}, waiting, round);
    }
    return;
  }
  auto job = job_of(pods_.at(uids.front()), queue);
  // It comes when its last member has come; one that has begun, before all others.
  for (const auto& uid : uids) job.sequence = std::max(job.sequence, sequence_of(pods_.at(uid).object.pod));
  if (view.half) job.sequence = 0;
  job.id += "+";  // beside those of it that run
  job.gang.arrangement = view.arrangement.value_or(placement::Arrangement::kPack);
  add_job(std::move(job), uids, waiting, round, view.topology_key);
  if (!view.later.empty())
    hold(view.later, Dimension::kGang,
         fmt::format("waits until {} other pods of the gang '{}' have started", uids.size(), describe(gang)),
         round);
}

/// Where one of its pods cannot be planned, none is.
void Scheduler::add_job(Job job, const std::vector<std::string>& uids, Waiting& waiting, Round& round,
                        const std::string& topology_key) {
  for (const auto& uid : uids) {
    auto demand = demand_now(pods_.at(uid));
    if (!demand) return hold(uids, Dimension::kHeld, to_string(demand.error()), round);
    job.gang.members.push_back(std::move(*demand));
  }
  if (!topology_key.empty()) keep_in_one_domain(job.gang, topology_key);
  waiting.pods.emplace(job.id, uids);
  waiting.jobs.push_back(std::move(job));
}

void Scheduler::hold(const std::vector<std::string>& uids, Dimension why, const std::string& words,
                     Round& round) {
  for (const auto& uid : uids) {
    round.waiting.emplace(uid, placement::Reasons{.list = {{why, 0, words}}});
    (why == Dimension::kOrder ? round.order : round.held).push_back(uid);
  }
}

/// The first domain that has room for all, else the one with the most nodes.
void Scheduler::keep_in_one_domain(placement::Gang& gang, const std::string& topology_key) {
  std::map<std::string, std::size_t> domains;
  for (const auto& [name, state] : cluster_.nodes())
    if (state.node)
      if (const auto* const value = label(state.node->labels, topology_key)) ++domains[*value];
  const auto in_domain = [&](const std::string& value) {
    std::map<std::shared_ptr<const Eligibility>, std::shared_ptr<const Eligibility>> narrowed;
    auto copy = gang;
    for (auto& member : copy.members) {
      auto& made = narrowed[member.eligibility];
      if (!made) made = within(member.eligibility, cluster_, topology_key, value);
      member.eligibility = made;
    }
    return copy;
  };
  const std::string* largest = nullptr;
  for (const auto& [value, nodes] : domains) {
    auto copy = in_domain(value);
    if (placement::try_place(places_, copy)) {
      gang = std::move(copy);
      return;
    }
    if (largest == nullptr || nodes > domains.at(*largest)) largest = &value;
  }
  gang = in_domain(largest == nullptr ? "" : *largest);
}

Scheduler::Use Scheduler::use(const Round& round) const {
  Use use{sharing_, {}, {}};
  const auto each = [&](const Job& job, const auto& apply) {
    apply(use.namespaces[job.name_space]);
    for (auto at = std::string_view(job.queue); !at.empty(); at = placement::parent_of(at))
      apply(use.queues[std::string(at)]);
  };
  for (const auto& running : bound_.running()) {
    const auto held = placement::amounts_of(places_, running.job.gang);
    each(running.job, [&](SharingUse& of) {
      of.held.gpu_milli += held.gpu_milli;
      of.held.milli_cpus += held.milli_cpus;
      of.held.memory_bytes += held.memory_bytes;
    });
  }
  std::set<std::string> seen;
  for (const auto* const uids : {&round.order, &round.held})
    for (const auto& uid : *uids) {
      const auto found = pods_.find(uid);
      if (found == pods_.end()) continue;
      const auto job = job_of(found->second, queue_of(found->second));
      if (seen.insert(job.id).second) each(job, [](SharingUse& of) { ++of.waiting; });
    }
  return use;
}

}  // namespace drover::kube::scheduler

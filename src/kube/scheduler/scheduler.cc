#include "kube/scheduler/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "kube/scheduler/gpu_request.h"
#include "kube/scheduler/predicates.h"

namespace drover::kube::scheduler {
namespace {

using placement::Decision;

constexpr std::size_t kMostNodesTried = 64;  ///< of the fullest, and of the emptiest
constexpr const char* kPutOff = "what it needs was taken by others while this was decided";
constexpr const char* kIsHeld =
    "waits until pods of other schedulers keep off a node that is full but for the room for it";

Decision decision_on(const std::string& node, const placement::Request& demand,
                     std::vector<placement::Grant> gpus) {
  Decision decision{.node = node};
  if (demand.gpu_count() > 0) decision.gpus = std::move(gpus);
  return decision;
}

std::vector<placement::Grant> whole_gpus(const std::vector<std::string>& uuids) {
  std::vector<placement::Grant> grants;
  for (const auto& uuid : uuids) grants.push_back({.uuid = uuid});
  return grants;
}

}  // namespace

Result<PodObject> read_pod_object(const nlohmann::json& pod, const ServerVersion& version) {
  PodObject object;
  DROVER_TRY(object.pod, read_pod(pod, version));
  object.queues = read_queue_names(pod);
  auto gang = read_gang_member(pod);
  if (gang)
    object.gang = std::move(*gang);
  else
    object.mistake = gang.error().message;
  return object;
}

PodName name_of(const Pod& pod) {
  return {pod.uid, pod.name_space, pod.name};
}

Scheduler::Scheduler(SchedulerOptions options) : options_(std::move(options)), places_(options_.policy) {}

Scheduler::Known Scheduler::known(PodObject object) {
  Known made;
  auto& pod = object.pod;
  made.node = pod.node_name;
  made.queued = pod.made_from->scheduler_name != options_.name && pod.release.queued();
  if (made.queued) enter_by_gate(made, pod);
  auto demand = demand_of(pod, options_.gpu_resource);
  made.demand = std::move(demand.request);
  made.of_claims = std::move(demand.of_claims);
  if (object.mistake.empty()) object.mistake = std::move(demand.mistake);
  if (object.mistake.empty() && made.queued && !pod.made_from->gpu_request.empty())
    object.mistake =
        fmt::format("only the scheduler '{}' looks at the annotation '{}', and another one binds the pod",
                    options_.name, kGpuRequestAnnotation);
  auto rest = without_demand(*pod.made_from, options_.gpu_resource);
  made.rest = templates_.share(std::make_shared<const PodTemplate>(std::move(rest)));
  pod.made_from = templates_.share(std::move(pod.made_from));
  pod.labels = labels_.share(pod.labels ? std::move(pod.labels) : std::make_shared<const Labels>());
  if (!pod.node_name.empty()) made.gpus = pod.gpus;
  made.object = std::move(object);
  return made;
}

/// Whether nothing has changed but what was decided, or nobody looks at.
bool Scheduler::is_as_known(const Known& next, const Known& now) const {
  const auto &pod = next.object.pod, &before = now.object.pod;
  const bool was_expected = now.queued && now.decided && !next.decided;
  const bool same_place = next.node.empty() ? now.decided || now.node.empty()
                                            : !was_expected && next.node == now.node &&
                                                  (next.gpus.empty() || next.gpus == now.gpus);
  return same_place && pod.made_from == before.made_from && pod.labels == before.labels &&
         pod.terminating == before.terminating && pod.claims == before.claims &&
         pod.started == before.started && pod.release == before.release &&
         pod.time_limit == before.time_limit && next.object.gang == now.object.gang &&
         next.object.queues == now.object.queues && next.object.mistake == now.object.mistake;
}

void Scheduler::put_pod(PodObject object) {
  const auto uid = object.pod.uid;
  if (object.pod.ended) {
    remove_pod(uid);
    if (object.gang && object.gang->succeeded) gangs_.put_pod(object.pod, *object.gang);
    return;
  }
  auto next = known(std::move(object));
  const auto found = pods_.find(uid);
  if (const bool came = found == pods_.end() || found->second.node.empty();
      came && !next.node.empty() && !is_ours(next))
    holds_.note_stranger(next.node, next.object.pod.made_from->requests, decided_at_);
  if (found == pods_.end()) {
    take(uid, pods_.emplace(uid, std::move(next)).first->second);
    return;
  }
  auto& now = found->second;
  if (now.lapsed && next.decided) lapse(next);
  if (is_as_known(next, now)) {
    now.object.pod = std::move(next.object.pod);
    if (!next.node.empty() && !next.decided && std::exchange(now.decided, false)) {
      now.claims.clear();
      drop_volumes(now);
    }
    return;
  }
  if (next.node.empty() && now.decided) {
    next.node = now.node;
    next.gpus = now.gpus;
    next.decided = true;
  }
  const bool was_expected = now.queued && now.decided && !next.decided;
  if (next.node == now.node && next.gpus.empty() && !was_expected) next.gpus = now.gpus;
  next.evicted = now.evicted;
  next.not_before = now.not_before;
  if (next.decided) {
    next.claims = std::move(now.claims);
    next.volumes = std::move(now.volumes);
    now.volumes.clear();
  }
  drop_volumes(now);
  give_back(uid, now);
  now = std::move(next);
  take(uid, now);
}

void Scheduler::remove_pod(const std::string& uid) {
  gangs_.remove_pod(uid);
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  const auto pod = std::move(found->second.object.pod);
  give_back(uid, found->second);
  drop_volumes(found->second);
  drop_claim_to_come(uid);
  pods_.erase(found);
  follow_claims(pod);
}

void Scheduler::take(const std::string& uid, Known& known) {
  changed_ = true;
  auto pod = known.object.pod;
  pod.node_name = known.node;
  if (is_ours(known) && known.object.gang) gangs_.put_pod(pod, *known.object.gang, known.object.queues.own);
  if (known.node.empty()) {
    if (is_ours(known) && !pod.terminating) waiting_.insert(uid);
    return;
  }
  cluster_.put_pod(std::move(pod));
  eligible_.note_node(known.node);
  bound_.put(uid, bound_pod(known));
  if (known.queued && known.decided) held_.insert(uid);
  if (is_ours(known)) budgets_.put_pod(job_id(known.object), known.object.pod);
  if (gpus_by_limits(known) > 0 && known.gpus.empty()) without_gpus_.insert(uid);
  follow_claims(known.object.pod);
}

void Scheduler::give_back(const std::string& uid, const Known& known) {
  changed_ = true;
  waiting_.erase(uid);
  without_gpus_.erase(uid);
  if (known.node.empty()) return;
  cluster_.remove_pod(uid);
  eligible_.note_node(known.node);
  bound_.remove(uid);
  budgets_.remove_pod(uid);
}

BoundPod Scheduler::bound_pod(const Known& known) const {
  const auto& pod = known.object.pod;
  auto gpus = whole_gpus(known.gpus);
  const bool expected = known.queued && known.decided && !gpus.empty();
  const auto claimed = expected ? std::vector<placement::Grant>() : claimed_gpus(known);
  gpus.insert(gpus.end(), claimed.begin(), claimed.end());
  auto demand = demand_with(known, gpus);
  // Which it has by limits may not be known yet.
  if (!expected)
    demand = counted(std::move(demand), gpus_by_limits(known) + static_cast<int>(claimed.size()));
  return {.job = job_of(known, queue_of(known)),
          .demand = demand,
          .decision = decision_on(known.node, demand, std::move(gpus)),
          .started = pod.started == TimePoint{} ? pod.created : pod.started,
          .ending = pod.terminating || known.evicted,
          .ours = is_ours(known)};
}

void Scheduler::assume(const std::string& uid, const std::string& node,
                       const std::vector<placement::Grant>& gpus) {
  auto& known = pods_.at(uid);
  give_back(uid, known);
  known.node = node;
  known.decided = true;
  known.gpus.clear();
  for (const auto& grant : gpus) known.gpus.push_back(grant.uuid);
  take(uid, known);
}

void Scheduler::take_back(const std::string& uid, bool claims_stand) {
  auto& known = pods_.at(uid);
  give_back(uid, known);
  give_back_claims(known, claims_stand);
  drop_volumes(known);
  known.node.clear();
  known.gpus.clear();
  known.decided = false;
  take(uid, known);
  follow_claims(known.object.pod);
}

/// Of places that are as good as each other the first is taken: nodes stand by their names, in whatever order
/// they came, so that whoever begins anew decides the same.
void Scheduler::prepare() {
  const bool anew = std::exchange(out_of_order_, false);
  if (anew) {
    auto names = places_.nodes();
    std::ranges::sort(names);
    placement::Cluster ordered(options_.policy);
    for (const auto& name : names) ordered.set_node(*places_.node(name));
    places_ = std::move(ordered);
  }
  follow_queues();
  bound_.sync(places_, anew);
  guess_gpus();
  std::erase_if(gone_nodes_, [&](const auto& name) { return places_.remove_node(name).has_value(); });
}

/// Gangs whose object has come, or names another queue, since their pods were bound.
void Scheduler::follow_queues() {
  for (const auto& gang : gangs_.take_changed())
    for (const auto& uid : gangs_.view(gang).bound) {
      const auto& known = pods_.at(uid);
      if (const auto* const bound = bound_.find(uid); bound != nullptr && bound->job.queue != queue_of(known))
        bound_.put(uid, bound_pod(known));
    }
}

/// When all is known that says which it has.
void Scheduler::guess_gpus() {
  for (auto next = without_gpus_.begin(); next != without_gpus_.end();) {
    auto& known = pods_.at(*next);
    auto demand = counted(known.demand, known.demand.gpu_count());
    demand.milli_cpus = 0;
    demand.memory_bytes = 0;
    const auto decision = places_.try_place_on(known.node, demand);
    if (!decision) {
      ++next;
      continue;
    }
    for (const auto& grant : decision->gpus) known.gpus.push_back(grant.uuid);
    bound_.put(*next, bound_pod(known));
    bound_.sync(places_);
    next = without_gpus_.erase(next);
  }
}

/// All of them, each where it was planned, or none.
bool Scheduler::start_as_planned(const placement::Start& decided, const std::vector<std::string>& uids) {
  std::size_t taken = 0;
  while (taken < uids.size() && start_on(uids[taken], decided.decisions[taken])) ++taken;
  if (taken == uids.size()) return true;
  for (std::size_t i = 0; i < taken; ++i) take_back(uids[i]);
  return false;
}

Start Scheduler::start_of(const std::string& job, const std::vector<std::string>& uids) const {
  Start start{job, {}};
  for (const auto& uid : uids) {
    const auto& known = pods_.at(uid);
    auto& binding =
        start.bindings.emplace_back(Binding{name_of(known.object.pod), known.node, {}, known.claims});
    if (!known.queued) binding.claimed = gpus_of_claims(known.object.pod);
    binding.opens_gate = known.queued;
    if (!known.queued && names_gpus(known.node)) binding.gpus = known.gpus;
  }
  return start;
}

/// Whatever starts, by this way alone.
void Scheduler::tell_start(Start start, Round& round, const OnStart& on_start) {
  if (on_start) on_start(start);
  round.starts.push_back(std::move(start));
}

/// Once more with all that counts, and with what has been decided since it was planned.
bool Scheduler::start_on(const std::string& uid, const placement::Decision& decision) {
  auto& known = pods_.at(uid);
  const auto state = cluster_.nodes().find(decision.node);
  if (state == cluster_.nodes().end()) return false;
  const Predicates predicates(cluster_, known.object.pod);
  if (!predicates.check(state->second).fits()) return false;
  if (!may_use_room(known, state->second, false)) return false;
  if (improvised_ && !is_free(known, decision)) return false;
  auto gpus = decision.gpus;
  if (!known.queued && !take_claims(known, state->second, gpus)) return false;
  if (planning_ && std::exchange(improvised_, false)) {  // whether that is free cannot be asked yet
    give_back_claims(known, false);
    return false;
  }
  if (improvised_ && !known.claims.empty()) {
    auto got = decision;
    got.gpus = gpus;
    for (const auto& claim : known.claims)
      if (claim.allocation)
        for (auto& grant : claims_.grants_of(*claim.allocation)) got.gpus.push_back(std::move(grant));
    if (!is_free(known, got)) {
      give_back_claims(known, false);
      return false;
    }
  }
  keep_volumes(known, predicates.volumes_on(state->second), decision.node);
  assume(uid, decision.node, gpus);
  return true;
}

/// For members of a gang that keep each other off nodes, by ports or affinities, and for claims of particular
/// devices: each is placed where what was decided before it lets it.
bool Scheduler::place_one_by_one(const std::vector<std::string>& uids,
                                 const std::vector<std::string>& names) {
  improvised_ = true;
  const auto placed = [&](const std::string& uid) {
    bound_.sync(places_);
    const auto& known = pods_.at(uid);
    auto demand = demand_now(known);
    if (!demand) return false;
    const auto best = places_.try_place(*demand);
    if (!best) return false;
    if (start_on(uid, *best)) return true;
    auto others = places_.fitting_positions(*demand);
    // The best are the fullest, and may all have what is free in the wrong places; the last are the emptiest.
    if (others.size() > 2 * kMostNodesTried)
      others.erase(others.begin() + kMostNodesTried, others.end() - kMostNodesTried);
    for (const auto position : others) {
      if (had_nothing(known, names[position])) continue;
      const auto decision = places_.try_place_on(names[position], *demand);
      if (decision && decision->node != best->node && start_on(uid, *decision)) return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < uids.size(); ++i) {
    if (placed(uids[i])) continue;
    for (std::size_t taken = 0; taken < i; ++taken) take_back(uids[taken]);
    bound_.sync(places_);
    return false;
  }
  return true;
}

/// Not where others may take it in the same moment.
bool Scheduler::may_use_room(const Known& known, const NodeState& state, bool matters) {
  const auto& wants = known.object.pod.made_from->requests;
  if (!holds_nodes_ || known.queued || (wants.cpu == 0 && wants.memory == 0)) return true;
  const auto& all = state.node->allocatable;
  const Resources left{.cpu = all.cpu - state.requested.cpu - wants.cpu,
                       .memory = all.memory - state.requested.memory - wants.memory};
  return holds_.may_use(state.node->name, left, matters, decided_at_);
}

/// Whether that is what keeps some of them from starting as planned: then those nodes are to be held.
bool Scheduler::wish_for_room(const placement::Start& decided, const std::vector<std::string>& uids) {
  bool wished = false;
  for (std::size_t i = 0; i < uids.size(); ++i)
    if (const auto state = cluster_.nodes().find(decided.decisions[i].node);
        state != cluster_.nodes().end() && state->second.node)
      wished = !may_use_room(pods_.at(uids[i]), state->second, true) || wished;
  return wished;
}

/// Where something was put elsewhere than planned, what was planned after it may be taken.
bool Scheduler::is_free(const Known& known, const placement::Decision& decision) {
  bound_.sync(places_);
  auto demand = demand_with(known, decision.gpus);
  if (decision.gpus.empty()) demand = counted(demand, known.demand.gpu_count());
  const std::string probe = "probe";
  const bool free = places_.allocate(probe, demand, decision).has_value();
  if (free) places_.release(probe);
  return free;
}

Round Scheduler::decide(TimePoint now, const OnStart& on_start) {
  if (std::exchange(changed_, false)) remedies_.clear();
  decided_at_ = now;
  improvised_ = false;
  claims_.look_again();
  prepare();
  Round round;
  end_holds(now, round);
  end_volumes(now, round, on_start);
  auto waiting = waiting_jobs(now, round);
  bound_.sync(places_);  // without what was left of earlier tries
  std::size_t started = 0;
  const auto begin = [&](const std::string& job) {
    auto start = start_of(job, waiting.pods.at(job));
    ++started;
    if (!begin_volumes(start, now, round)) tell_start(std::move(start), round, on_start);
  };
  std::vector<placement::Start> put_off;
  const auto on_decided = [&](const placement::Start& decided) {
    if (start_as_planned(decided, waiting.pods.at(decided.job)))
      begin(decided.job);
    else
      put_off.push_back(decided);
  };
  const auto budgets = budgets_.budgets();  // as they were: each start changes them
  planning_ = true;
  auto plan =
      placement::plan(places_, sharing_.rules, waiting.jobs, bound_.running(), now, *budgets, on_decided);
  planning_ = false;
  eligible_.sweep();
  const auto names = put_off.empty() ? std::vector<std::string>() : places_.nodes();
  for (const auto& decided : put_off) {
    const auto& uids = waiting.pods.at(decided.job);
    if (start_as_planned(decided, uids) || place_one_by_one(uids, names))
      begin(decided.job);
    else
      hold(uids, placement::Dimension::kOrder, wish_for_room(decided, uids) ? kIsHeld : kPutOff, round);
  }
  round.node_holds = holds_.changes(!waiting_.empty(), now);
  if (const auto at = round.node_holds.again) round.retry_at = std::min(round.retry_at.value_or(*at), *at);
  const bool all_started = started == plan.starts.size();
  // What could not start together with others is tried again when they have; what could not start alone is
  // told why by then.
  round.again = !all_started && started > 0;
  for (const auto& preemption : plan.preemptions) {
    std::vector<std::string> uids;
    for (const auto& victim : preemption.victims)
      std::ranges::move(bound_.pods_of(victim), std::back_inserter(uids));
    const auto& winner = pods_.at(waiting.pods.at(preemption.job).front());
    evict(uids, {.job = preemption.job, .winner = name_of(winner.object.pod)}, now, round);
  }
  evict_tainted(now, round);
  for (const auto& job : plan.order)
    if (const auto reasons = plan.waiting.find(job); reasons != plan.waiting.end())
      for (const auto& uid : waiting.pods.at(job)) {
        round.waiting.emplace(uid, reasons->second);
        round.order.push_back(uid);
      }
  for (const auto* const uids : {&round.order, &round.held})
    for (const auto& uid : *uids) give_up_claims(uid, round);
  end_half_gangs(now, round);
  for (auto& [uid, reasons] : round.waiting) tell_of_the_other_door(reasons);
  left_ = std::move(waiting);
  std::erase_if(left_.jobs,
                [&](const auto& job) { return !round.waiting.contains(left_.pods.at(job.id).front()); });
  return round;
}

void Scheduler::failed(const std::string& uid, TimePoint until, bool claims_stand) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  auto& known = found->second;
  known.not_before = until;
  changed_ = true;
  if (std::exchange(known.evicted, false)) {
    bound_.put(uid, bound_pod(known));
    budgets_.set_ending(uid, false);
    taints_changed_ = true;
    return;
  }
  if (known.decided)
    take_back(uid, claims_stand);
  else if (!claims_stand && drop_claim_to_come(uid) && !known.node.empty())
    bound_.put(uid, bound_pod(known));  // another has bound it
}

}  // namespace drover::kube::scheduler

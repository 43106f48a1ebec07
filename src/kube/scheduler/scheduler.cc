#include "kube/scheduler/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/scheduler/predicates.h"

namespace drover::kube::scheduler {
namespace {

using placement::Decision;
using placement::Job;
using placement::RunningJob;

constexpr const char* kUsesClaims =
    "asks for devices by resource claims, which only the default scheduler can give";

std::uint64_t hash_of(const std::string& text) {
  constexpr std::uint64_t kOffset = 14695981039346656037ULL;
  constexpr std::uint64_t kPrime = 1099511628211ULL;
  std::uint64_t hash = kOffset;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  return hash;
}

/// The order of arrival, as far as the API server tells: to the second, and then any order that stays.
std::uint64_t sequence_of(const Pod& pod) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(pod.created).time_since_epoch().count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(seconds, 0)) << 32 | hash_of(pod.uid) >> 32;
}

Job job_of(const Pod& pod, placement::Request demand) {
  Job job;
  job.id = pod.uid;
  job.gang.members.push_back(std::move(demand));
  job.user = job.name_space = pod.name_space;
  job.priority = static_cast<int>(pod.made_from->priority);
  job.sequence = sequence_of(pod);
  job.time_limit = pod.time_limit;
  return job;
}

Decision decision_on(const std::string& node, const placement::Request& demand,
                     const std::vector<std::string>& gpus) {
  Decision decision{.node = node};
  if (demand.gpu_count() == 0) return decision;
  for (const auto& uuid : gpus) decision.gpus.push_back({.uuid = uuid});
  return decision;
}

bool same(const Node& one, const Node& other) {
  return one.labels == other.labels && *one.taints == *other.taints &&
         one.unschedulable == other.unschedulable && one.allocatable == other.allocatable &&
         one.most_pods == other.most_pods && one.features == other.features;
}

/// As many as a node says that it can give out.
gpu::Inventory counted_gpus(const std::string& node, std::int64_t count) {
  gpu::Inventory inventory;
  const auto size = static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, placement::kMaxDevices));
  for (std::size_t i = 0; i < size; ++i)
    inventory.devices.push_back({.uuid = fmt::format("{}#{}", node, i), .index = static_cast<int>(i)});
  inventory.links.assign(size, std::vector<gpu::Link>(size));
  return inventory;
}

bool is_counted_only(const std::string& uuid) {
  return uuid.find('#') != std::string::npos;
}

}  // namespace

Scheduler::Scheduler(SchedulerOptions options) : options_(std::move(options)), places_(options_.policy) {}

placement::Node Scheduler::placement_node(const Node& node, const std::optional<gpu::Inventory>& gpus) const {
  placement::Node made{.name = node.name};
  made.milli_cpus = node.allocatable.cpu;
  made.memory_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(node.allocatable.memory, 0));
  const auto found = node.allocatable.others.find(options_.gpu_resource);
  auto count = found == node.allocatable.others.end() ? 0 : found->second;
  made.inventory = gpus ? *gpus : counted_gpus(node.name, count);
  for (auto& device : made.inventory.devices) {
    if (!gpu::why_withheld(device).empty()) continue;
    if (count-- <= 0) device.unhealthy = "its node does not offer it";
  }
  return made;
}

void Scheduler::put_node(Node node, std::optional<gpu::Inventory> gpus) {
  const auto made = placement_node(node, gpus);
  const auto name = node.name;
  const auto* before = places_.node(name);
  const auto state = cluster_.nodes().find(name);
  const bool known = before != nullptr && state != cluster_.nodes().end() && state->second.node;
  if (known && *before == made && same(*state->second.node, node)) return;
  // Domains of topology are counted over all nodes.
  if (!known || state->second.node->labels != node.labels)
    eligible_.note_all();
  else
    eligible_.note_node(name);
  gone_nodes_.erase(name);
  if (before == nullptr && name < last_node_) out_of_order_ = true;
  last_node_ = std::max(last_node_, name);
  places_.set_node(made);
  cluster_.put_node(std::move(node));
}

void Scheduler::remove_node(const std::string& name) {
  cluster_.remove_node(name);
  eligible_.note_all();
  if (places_.remove_node(name)) return;
  gone_nodes_.insert(name);  // its pods will be gone soon
  places_.set_node({.name = name, .cordoned = "is gone"});
}

void Scheduler::set_rules(placement::Rules rules) {
  rules_ = std::move(rules);
}

Scheduler::Known Scheduler::known(Pod pod) {
  Known made;
  made.demand = demand_of(*pod.made_from, options_.gpu_resource);
  auto rest = without_demand(*pod.made_from, options_.gpu_resource);
  if (!rest.resource_claims.empty()) rest.unsupported.emplace_back(kUsesClaims);
  made.rest = templates_.share(std::make_shared<const PodTemplate>(std::move(rest)));
  pod.made_from = templates_.share(std::move(pod.made_from));
  pod.labels = labels_.share(pod.labels ? std::move(pod.labels) : std::make_shared<const Labels>());
  made.node = pod.node_name;
  if (!made.node.empty()) made.gpus = pod.gpus;
  made.pod = std::move(pod);
  return made;
}

void Scheduler::put_pod(Pod pod) {
  const auto uid = pod.uid;
  if (pod.ended) return remove_pod(uid);
  auto next = known(std::move(pod));
  const auto found = pods_.find(uid);
  if (found == pods_.end()) {
    take(uid, pods_.emplace(uid, std::move(next)).first->second);
    return;
  }
  auto& now = found->second;
  if (next.node.empty() && now.decided) {
    next.node = now.node;
    next.gpus = now.gpus;
    next.decided = true;
  }
  if (next.node == now.node && next.gpus.empty()) next.gpus = now.gpus;
  next.evicted = now.evicted;
  next.not_before = now.not_before;
  give_back(uid, now);
  now = std::move(next);
  take(uid, now);
}

void Scheduler::remove_pod(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  give_back(uid, found->second);
  pods_.erase(found);
}

void Scheduler::take(const std::string& uid, Known& known) {
  if (known.node.empty()) {
    if (is_ours(known.pod) && !known.pod.terminating) waiting_.insert(uid);
    return;
  }
  auto bound = known.pod;
  bound.node_name = known.node;
  cluster_.put_pod(std::move(bound));
  eligible_.note_node(known.node);
  allocate(uid, known);
  if (known.demand.gpu_count() > 0 && known.gpus.empty()) without_gpus_.insert(uid);
}

void Scheduler::allocate(const std::string& uid, const Known& known) {
  places_.restore(uid, known.demand, decision_on(known.node, known.demand, known.gpus));
  if (is_ours(known.pod)) add_running(uid, known);
}

void Scheduler::give_back(const std::string& uid, const Known& known) {
  waiting_.erase(uid);
  without_gpus_.erase(uid);
  if (known.node.empty()) return;
  cluster_.remove_pod(uid);
  eligible_.note_node(known.node);
  places_.release(uid);
  remove_running(uid);
  if (gone_nodes_.contains(known.node) && places_.remove_node(known.node)) gone_nodes_.erase(known.node);
}

void Scheduler::add_running(const std::string& uid, const Known& known) {
  remove_running(uid);
  RunningJob running{job_of(known.pod, known.demand),
                     {decision_on(known.node, known.demand, known.gpus)},
                     known.pod.started == TimePoint{} ? known.pod.created : known.pod.started,
                     known.pod.terminating || known.evicted};
  running_at_[uid] = running_.size();
  running_.push_back(std::move(running));
}

void Scheduler::remove_running(const std::string& uid) {
  const auto found = running_at_.find(uid);
  if (found == running_at_.end()) return;
  const auto at = found->second;
  running_at_.erase(found);
  if (at + 1 != running_.size()) {
    running_[at] = std::move(running_.back());
    running_at_[running_[at].job.id] = at;
  }
  running_.pop_back();
}

/// When all is known that says which it has.
void Scheduler::guess_gpus() {
  for (auto next = without_gpus_.begin(); next != without_gpus_.end();) {
    auto& known = pods_.at(*next);
    auto demand = known.demand;
    demand.milli_cpus = 0;
    demand.memory_bytes = 0;
    const auto decision = places_.try_place_on(known.node, demand);
    if (!decision) {
      ++next;
      continue;
    }
    for (const auto& grant : decision->gpus) known.gpus.push_back(grant.uuid);
    allocate(*next, known);
    next = without_gpus_.erase(next);
  }
}

std::vector<Job> Scheduler::waiting_jobs(TimePoint now, std::optional<TimePoint>& retry_at) {
  std::vector<Job> jobs;
  jobs.reserve(waiting_.size());
  for (const auto& uid : waiting_) {
    const auto& known = pods_.at(uid);
    if (!known.pod.made_from->scheduling_gates.empty()) continue;
    if (known.not_before > now) {
      retry_at = std::min(retry_at.value_or(known.not_before), known.not_before);
      continue;
    }
    auto rest = known.pod;
    rest.made_from = known.rest;
    auto demand = known.demand;
    demand.eligibility = eligible_.of(rest);
    jobs.push_back(job_of(known.pod, std::move(demand)));
  }
  return jobs;
}

std::optional<Start> Scheduler::start(const placement::Start& decided) {
  auto& known = pods_.at(decided.job);
  const auto& decision = decided.decisions.front();
  const auto state = cluster_.nodes().find(decision.node);
  if (state == cluster_.nodes().end() || !Predicates(cluster_, known.pod).check(state->second).fits())
    return std::nullopt;
  give_back(decided.job, known);
  known.node = decision.node;
  known.decided = true;
  known.gpus.clear();
  Binding binding{{known.pod.uid, known.pod.name_space, known.pod.name}, known.node, {}};
  for (const auto& grant : decision.gpus) {
    known.gpus.push_back(grant.uuid);
    if (!is_counted_only(grant.uuid)) binding.gpus.push_back(grant.uuid);
  }
  take(decided.job, known);
  return Start{decided.job, {std::move(binding)}};
}

/// Of places that are as good as each other the first is taken: nodes stand by their names, in whatever order
/// they came, so that whoever begins anew decides the same.
void Scheduler::reorder() {
  if (!std::exchange(out_of_order_, false)) return;
  auto names = places_.nodes();
  std::ranges::sort(names);
  placement::Cluster ordered(options_.policy);
  for (const auto& name : names) ordered.set_node(*places_.node(name));
  places_ = std::move(ordered);
  for (const auto& [uid, known] : pods_)
    if (!known.node.empty()) allocate(uid, known);
}

Round Scheduler::decide(TimePoint now) {
  reorder();
  guess_gpus();
  Round round;
  const auto waiting = waiting_jobs(now, round.retry_at);
  auto plan = placement::plan(places_, rules_, waiting, running_, now);
  eligible_.sweep();
  for (const auto& decided : plan.starts) {
    if (auto done = start(decided))
      round.starts.push_back(std::move(*done));
    else
      round.again = true;
  }
  for (const auto& preemption : plan.preemptions)
    for (const auto& victim : preemption.victims) {
      auto& known = pods_.at(victim);
      known.evicted = true;
      add_running(victim, known);
      round.evictions.push_back({{known.pod.uid, known.pod.name_space, known.pod.name}, preemption.job});
    }
  std::erase_if(plan.order, [&](const std::string& job) { return !plan.waiting.contains(job); });
  round.order = std::move(plan.order);
  round.waiting = std::move(plan.waiting);
  return round;
}

std::vector<Scheduler::Waiter> Scheduler::waiters(const Round& round) const {
  std::vector<Waiter> waiters;
  waiters.reserve(round.order.size());
  const auto nodes = places_.size();
  for (const auto& uid : round.order) {
    const auto found = pods_.find(uid);
    if (found == pods_.end()) continue;
    const auto& pod = found->second.pod;
    waiters.push_back({{pod.uid, pod.name_space, pod.name},
                       {.reasons = round.waiting.at(uid),
                        .nodes = nodes,
                        .place = waiters.size() + 1,
                        .of = round.order.size(),
                        .queue = {}}});
  }
  return waiters;
}

void Scheduler::failed(const std::string& uid, TimePoint until) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  auto& known = found->second;
  known.not_before = until;
  if (std::exchange(known.evicted, false)) return add_running(uid, known);
  if (!known.decided) return;
  give_back(uid, known);
  known.node.clear();
  known.gpus.clear();
  known.decided = false;
  take(uid, known);
}

}  // namespace drover::kube::scheduler

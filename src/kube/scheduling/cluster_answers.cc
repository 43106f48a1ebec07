#include "kube/scheduling/cluster_answers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "kube/scheduler/unschedulable.h"

namespace drover::kube {
namespace {

using nlohmann::json;
using scheduler::Scheduler;

constexpr int kMostRounds = 100;

json amounts(std::int64_t gpu_milli, std::int64_t milli_cpus, std::uint64_t memory_bytes) {
  return {{"gpus", static_cast<double>(gpu_milli) / 1000},
          {"cpus", static_cast<double>(milli_cpus) / 1000},
          {"memory", memory_bytes}};
}

/// Without what is not limited.
json limits(const placement::Limits& of) {
  json value = json::object();
  if (of.gpu_milli) value["gpus"] = static_cast<double>(*of.gpu_milli) / 1000;
  if (of.milli_cpus) value["cpus"] = static_cast<double>(*of.milli_cpus) / 1000;
  if (of.memory_bytes) value["memory"] = *of.memory_bytes;
  return value;
}

std::string full_name(const scheduler::Pod& pod) {
  return fmt::format("{}/{}", pod.name_space, pod.name);
}

}  // namespace

ClusterAnswers::ClusterAnswers(Scheduler& scheduler, const scheduler::SchedulerOptions& options,
                               TimePoint now)
    : scheduler_(scheduler), options_(options) {
  scheduler::Round round;
  for (int rounds = 0; rounds == 0 || (round.again && rounds < kMostRounds); ++rounds) {
    round = scheduler_.decide(now);
    for (const auto& start : round.starts)
      for (const auto& binding : start.bindings) starts_.insert(binding.pod.uid);
    for (const auto& eviction : round.evictions)
      ended_for_[eviction.job].push_back(fmt::format("{}/{}", eviction.pod.name_space, eviction.pod.name));
  }
  waiters_ = scheduler_.waiters(round);
  for (std::size_t i = 0; i < waiters_.size(); ++i) waiter_of_.emplace(waiters_[i].pod.uid, i);
  use_ = scheduler_.use(round);
}

json ClusterAnswers::of_pod(const std::string& uid) const {
  const auto* const object = scheduler_.find_pod(uid);
  if (object == nullptr) return {};
  const auto& pod = object->pod;
  json answer{{"pod", full_name(pod)}, {"state", "waits"}};
  const auto say = [&](const char* state, std::string message) {
    answer["state"] = state;
    answer["message"] = std::move(message);
    return answer;
  };
  if (const auto node = scheduler_.node_of(uid); !node.empty()) {
    answer["state"] = starts_.contains(uid) ? "starts" : "bound";
    answer["node"] = node;
    answer["gpus"] = scheduler_.gpus_of(uid);
    return answer;
  }
  if (!scheduler_.is_ours(*object))
    return say("other", fmt::format("Its scheduler is '{}', and not '{}'", pod.made_from->scheduler_name,
                                    options_.name));
  if (const auto& gates = pod.made_from->scheduling_gates; !gates.empty())
    return say("gated", fmt::format("It is not looked at before its scheduling gates are open: {}",
                                    fmt::join(gates, ", ")));
  if (const auto waiter = waiter_of_.find(uid); waiter != waiter_of_.end())
    answer.update(of_waiter(waiters_[waiter->second]));
  else
    return say("waits", pod.terminating ? "It is being deleted" : "Nothing is known of it yet");
  return answer;
}

json ClusterAnswers::of_waiter(const Scheduler::Waiter& waiter) const {
  auto why = waiter.why;
  json answer{{"message", scheduler::unschedulable_message(why, options_.gpu_resource)},
              {"place", why.place},
              {"of", why.of},
              {"queue", why.queue.empty() ? std::string(placement::kDefaultQueue) : why.queue},
              {"reasons", placement::describe(why.reasons)},
              {"remedies", why.reasons.remedies},
              {"ends", json::array()}};
  for (const auto& job : {waiter.job, waiter.job + "+"})
    if (const auto ends = ended_for_.find(job); ends != ended_for_.end()) answer["ends"] = ends->second;
  return answer;
}

json ClusterAnswers::waiting_in(const std::string& queue) const {
  std::map<std::string, std::size_t> jobs;  // where each stands in the listing
  json listed = json::array();
  for (const auto& waiter : waiters_) {
    const auto of = waiter.why.queue.empty() ? std::string(placement::kDefaultQueue) : waiter.why.queue;
    const auto* const object = scheduler_.find_pod(waiter.pod.uid);
    if (of != queue || object == nullptr) continue;
    const auto demand = scheduler::demand_of(object->pod, options_.gpu_resource).request;
    const auto [found, is_new] = jobs.try_emplace(waiter.job, listed.size());
    if (!is_new) {
      auto& job = listed[found->second];
      job["members"] = job["members"].get<int>() + 1;
      auto& wanted = job["wanted"];
      wanted["gpus"] = wanted["gpus"].get<double>() + demand.gpu_count();
      wanted["cpus"] = wanted["cpus"].get<double>() + static_cast<double>(demand.milli_cpus) / 1000;
      wanted["memory"] = wanted["memory"].get<std::uint64_t>() + demand.memory_bytes;
      continue;
    }
    const auto told = of_waiter(waiter);
    listed.push_back(
        {{"id", full_name(object->pod)},
         {"user", object->pod.name_space},
         {"wanted", amounts(std::int64_t{1000} * demand.gpu_count(), demand.milli_cpus, demand.memory_bytes)},
         {"members", 1},
         {"priority", object->pod.made_from->priority},
         {"submitted_at", format_time(object->pod.created)},
         {"reasons", {told["message"]}},
         {"place", told["place"]}});
  }
  return listed;
}

json ClusterAnswers::of_queues() const {
  std::set<std::string> paths{std::string(placement::kDefaultQueue)};
  for (const auto& [path, unused] : use_.sharing.rules.queues) paths.insert(path);
  for (const auto& [path, unused] : use_.queues) paths.insert(path);
  json queues = json::array();
  for (const auto& path : paths) {
    const auto name = scheduler::queue_name(path);
    const auto set = use_.sharing.rules.queues.find(path);
    const auto rules = set == use_.sharing.rules.queues.end() ? placement::Queue{.path = path} : set->second;
    const auto held = use_.queues.find(path);
    const auto used = held == use_.queues.end() ? placement::ResourceAmounts{} : held->second.held;
    queues.push_back({{"queue", name},
                      {"used", amounts(used.gpu_milli, used.milli_cpus, used.memory_bytes)},
                      {"guarantee", limits(rules.guarantee)},
                      {"limit", limits(rules.limit)},
                      {"weight", rules.weight},
                      {"users", rules.users},
                      {"waiting", waiting_in(name)}});
  }
  return {{"queues", std::move(queues)}};
}

}  // namespace drover::kube

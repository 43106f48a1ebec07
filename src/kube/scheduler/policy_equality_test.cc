// What the scheduler of a cluster decides on objects as the API server shows them is what plan() decides on
// the same jobs: no second policy. Random histories; DROVER_TEST_STEPS says how long.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "kube/scheduler/scheduler.h"
#include "kube/scheduler/testing/objects.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;
using placement::Limits;
using namespace std::chrono_literals;

constexpr int kStepsOfHistory = 100;
constexpr std::int64_t kMebi = 1LL << 20;

int all_steps() {
  const auto* const said = std::getenv("DROVER_TEST_STEPS");
  return said == nullptr ? 1'500 : std::atoi(said);
}

/// As somebody has thought of it, in the words of neither side.
struct Work {
  int number = 0;
  std::string name_space, queue;
  int size = 1, gpus = 0, cpus = 1, mebibytes = 64, priority = 0;
  std::optional<std::chrono::seconds> time_limit = {};
  std::vector<placement::Decision> decisions = {};  ///< empty: it waits
  TimePoint started{};
  bool ending = false;

  std::string name(int rank) const { return fmt::format("w{}-{}", number, rank); }
  std::string id() const {
    return size == 1 ? "uid-" + name(0)
                     : fmt::format("{}:{}/w{}", static_cast<int>(GangKind::kDrover), name_space, number);
  }
};

json pod_of(const Work& work, int rank) {
  json metadata{{"name", work.name(rank)},
                {"namespace", work.name_space},
                {"uid", "uid-" + work.name(rank)},
                {"creationTimestamp", format_time(TimePoint(std::chrono::seconds(1000 + work.number)))}};
  metadata["labels"]["drover/queue"] = queue_name(work.queue);
  if (work.size > 1) {
    metadata["labels"]["drover/gang"] = fmt::format("w{}", work.number);
    metadata["annotations"]["drover/gang-size"] = std::to_string(work.size);
  }
  json requests{{"cpu", std::to_string(work.cpus)}, {"memory", fmt::format("{}Mi", work.mebibytes)}};
  if (work.gpus > 0) requests["nvidia.com/gpu"] = std::to_string(work.gpus);
  json container{{"name", "main"}, {"image", "i"}};
  container["resources"]["requests"] = requests;
  json spec{{"schedulerName", "drover"}, {"priority", work.priority}};
  spec["containers"] = json::array({container});
  json status = json::object();
  if (work.time_limit) spec["activeDeadlineSeconds"] = work.time_limit->count();
  if (!work.decisions.empty()) {
    const auto& decision = work.decisions[static_cast<std::size_t>(rank)];
    std::vector<std::string> uuids;
    for (const auto& grant : decision.gpus) uuids.push_back(grant.uuid);
    spec["nodeName"] = decision.node;
    metadata["annotations"]["drover.dev/gpus"] = fmt::format("{}", fmt::join(uuids, ","));
    status["startTime"] = format_time(work.started);
  }
  if (work.ending) metadata["deletionTimestamp"] = format_time(work.started);
  return {{"metadata", metadata}, {"spec", spec}, {"status", status}};
}

placement::Request request_of(const Work& work) {
  placement::Request request;
  request.milli_cpus = work.cpus * 1000;
  request.memory_bytes = static_cast<std::uint64_t>(work.mebibytes * kMebi);
  request.cpu_affinity = placement::Preference::kNone;
  if (work.gpus > 0) request.gpus = {{work.gpus, {}}};
  return request;
}

placement::Job job_of(const Work& work) {
  placement::Job job;
  job.id = work.id();
  job.gang.members.assign(static_cast<std::size_t>(work.size), request_of(work));
  job.user = job.name_space = work.name_space;
  job.queue = work.queue;
  job.priority = work.priority;
  job.sequence = static_cast<std::uint64_t>(work.number) + 1;
  job.time_limit = work.time_limit;
  return job;
}

json amounts(const Limits& limits) {
  json given = json::object();
  if (limits.gpu_milli) given["gpus"] = fmt::format("{}m", *limits.gpu_milli);
  if (limits.milli_cpus) given["cpus"] = fmt::format("{}m", *limits.milli_cpus);
  if (limits.memory_bytes) given["memory"] = std::to_string(*limits.memory_bytes);
  return given;
}

class TwoPlanners {
 public:
  explicit TwoPlanners(unsigned seed) : random_(seed) {
    for (int i = 0; i < 4; ++i) set_node(i);
    set_rules();
  }

  void step() {
    switch (below(12)) {
      case 0:
        return set_node(below(4));
      case 1:
        return set_rules();
      case 2:
      case 3:
        return finish();
      case 4:
      case 5:
        return decide();
      default:
        return add();
    }
  }

  /// Both, and what they say is what has happened by the next time.
  void decide() {
    now_ += std::chrono::seconds(1 + below(30));
    const auto round = scheduler_.decide(now_);
    const auto plan = direct();
    EXPECT_EQ(text(round), text(plan)) << shown();
    for (const auto& start : plan.starts) {
      auto& work = *find(start.job);
      work.decisions = start.decisions;
      work.started = std::chrono::floor<std::chrono::seconds>(now_);
      tell(work);
    }
    for (const auto& preemption : plan.preemptions)
      for (const auto& victim : preemption.victims) {
        find(victim)->ending = true;
        tell(*find(victim));
      }
  }

 private:
  int below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }
  bool one_in(int count) { return below(count) == 0; }

  void set_node(int number) {
    const auto name = fmt::format("n{}", number);
    const int gpus = number == 3 ? 8 : 4;
    auto inventory = testing::gpus_of(name, gpus, number);
    if (one_in(3)) inventory.devices[static_cast<std::size_t>(below(gpus))].unhealthy = "too hot";
    auto node = testing::gpu_node(name, gpus);
    node.allocatable.cpu = 8000 + 8000 * below(2);
    node.allocatable.memory = 1024 * kMebi;
    nodes_[name] = {.name = name,
                    .inventory = inventory,
                    .milli_cpus = node.allocatable.cpu,
                    .memory_bytes = static_cast<std::uint64_t>(node.allocatable.memory)};
    scheduler_.put_node(node, inventory);
  }

  void set_rules() {
    std::vector<Object> queues, quotas;
    do {
      rules_ = {};
      queues.clear();
      for (const auto* path : {"a", "a/x", "a/y", "b"}) queues.push_back(make_queue(path));
    } while (!placement::validate(rules_));
    for (const auto* name : {"ann", "bob"}) {
      if (!one_in(3)) continue;
      placement::Quota quota{.subject = {placement::SubjectKind::kNamespace, name}};
      quota.limit.gpu_milli = 1000 * (4 + below(8));
      quotas.push_back(std::make_shared<const json>(
          json{{"metadata", {{"name", name}}}, {"spec", {{"limit", amounts(quota.limit)}}}}));
      rules_.quotas.emplace(quota.subject, quota);
    }
    scheduler_.set_sharing(read_sharing(queues, quotas));
  }

  Object make_queue(const std::string& path) {
    placement::Queue queue{.path = path};
    if (one_in(3)) queue.limit.gpu_milli = 1000 * (2 + below(8));
    if (one_in(6)) queue.limit.milli_cpus = 1000 * (4 + below(20));
    if (one_in(3))
      queue.guarantee.gpu_milli = std::min<std::int64_t>(2000, queue.limit.gpu_milli.value_or(2000));
    queue.weight = 1 + below(3);
    const json metadata{{"name", queue_name(path)}, {"creationTimestamp", "2026-01-01T00:00:00Z"}};
    const json spec{
        {"limit", amounts(queue.limit)}, {"guarantee", amounts(queue.guarantee)}, {"weight", queue.weight}};
    rules_.queues.emplace(path, std::move(queue));
    return std::make_shared<const json>(json{{"metadata", metadata}, {"spec", spec}});
  }

  void add() {
    constexpr std::array kSpaces{"ann", "bob", "cyd"};
    constexpr std::array kQueues{"a", "a/x", "a/y", "b", "default"};
    Work work{.number = works_++, .name_space = kSpaces.at(below(3)), .queue = kQueues.at(below(5))};
    work.size = one_in(4) ? 2 + below(3) : 1;
    work.gpus = one_in(5) ? 0 : 1 << below(4);
    work.cpus = 1 + below(4);
    work.mebibytes = 64 << below(3);
    work.priority = one_in(3) ? below(3) : 0;
    if (one_in(3)) work.time_limit = std::chrono::seconds(10 + below(300));
    tell(work);
    all_.emplace(work.id(), std::move(work));
  }

  /// One that runs, one that is to end, or one whose owner thought better of it.
  void finish() {
    if (all_.empty()) return;
    auto found = std::ranges::find_if(all_, [](const auto& of) { return of.second.ending; });
    if (found == all_.end() || one_in(2))
      found = std::next(all_.begin(), below(static_cast<int>(all_.size())));
    for (int rank = 0; rank < found->second.size; ++rank)
      scheduler_.remove_pod("uid-" + found->second.name(rank));
    all_.erase(found);
  }

  void tell(const Work& work) {
    for (int rank = 0; rank < work.size; ++rank) {
      auto object = read_pod_object(pod_of(work, rank));
      ASSERT_TRUE(object) << to_string(object.error());
      scheduler_.put_pod(std::move(*object));
    }
  }

  Work* find(const std::string& job) { return &all_.at(job); }

  placement::Plan direct() const {
    placement::Cluster cluster(placement::NodePolicy::kPack);
    for (const auto& [name, node] : nodes_) cluster.set_node(node);
    std::vector<placement::Job> waiting;
    std::vector<placement::RunningJob> running;
    for (const auto& [id, work] : all_) {
      auto job = job_of(work);
      if (work.decisions.empty()) {
        waiting.push_back(std::move(job));
        continue;
      }
      for (std::size_t rank = 0; rank < work.decisions.size(); ++rank)
        cluster.restore(placement::allocation_id(job, rank), job.gang.members[rank], work.decisions[rank]);
      running.push_back({std::move(job), work.decisions, work.started, work.ending});
    }
    return placement::plan(cluster, rules_, waiting, running, now_);
  }

  std::string shown() const {
    std::string text;
    for (const auto& [path, queue] : rules_.queues)
      text += fmt::format("queue {}: at most {}, sure of {}, weight {}\n", path, amounts(queue.limit).dump(),
                          amounts(queue.guarantee).dump(), queue.weight);
    for (const auto& [name, node] : nodes_)
      text += fmt::format("{}: {} thousandths of a CPU, {}\n", name, node.milli_cpus,
                          std::ranges::count(node.inventory.devices, "too hot", &gpu::Device::unhealthy));
    for (const auto& [id, work] : all_)
      text += fmt::format("{} of {} in {}: {} × {} GPUs, {} CPUs, {} MiB, priority {}{}{}\n", id,
                          work.name_space, work.queue, work.size, work.gpus, work.cpus, work.mebibytes,
                          work.priority, work.decisions.empty() ? "" : " on " + work.decisions.front().node,
                          work.ending ? ", ends" : "");
    return text;
  }

  static std::string line(const std::string& job, std::size_t rank, const std::string& node,
                          const std::vector<std::string>& gpus) {
    return fmt::format("{}/{} on {}: {}\n", job, rank, node, fmt::join(gpus, " "));
  }

  std::string text(const placement::Plan& plan) const {
    std::string text;
    for (const auto& start : plan.starts)
      for (std::size_t rank = 0; rank < start.decisions.size(); ++rank) {
        std::vector<std::string> gpus;
        for (const auto& grant : start.decisions[rank].gpus) gpus.push_back(grant.uuid);
        text += line(start.job, rank, start.decisions[rank].node, gpus);
      }
    std::set<std::string> victims;
    for (const auto& preemption : plan.preemptions)
      for (const auto& victim : preemption.victims) victims.insert(victim + " for " + preemption.job);
    for (const auto& job : plan.order)
      if (const auto reasons = plan.waiting.find(job); reasons != plan.waiting.end())
        text += fmt::format("{} waits: {}\n", job, fmt::join(placement::describe(reasons->second), "; "));
    return text + fmt::format("ended: {}\n", fmt::join(victims, ", "));
  }

  /// Of pods, as jobs.
  std::string text(const Round& round) const {
    std::string text;
    const auto plain = [](std::string job) {
      if (job.ends_with('+')) job.pop_back();
      return job;
    };
    for (const auto& start : round.starts)
      for (std::size_t rank = 0; rank < start.bindings.size(); ++rank)
        text += line(plain(start.job), rank, start.bindings[rank].node, start.bindings[rank].gpus);
    std::set<std::string> victims;
    std::map<std::string, std::string> job_of_pod;
    for (const auto& [id, work] : all_)
      for (int rank = 0; rank < work.size; ++rank) job_of_pod["uid-" + work.name(rank)] = id;
    for (const auto& eviction : round.evictions)
      victims.insert(job_of_pod.at(eviction.pod.uid) + " for " + plain(eviction.job));
    std::set<std::string> said;
    for (const auto& uid : round.order)
      if (const auto& job = job_of_pod.at(uid); said.insert(job).second)
        text +=
            fmt::format("{} waits: {}\n", job, fmt::join(placement::describe(round.waiting.at(uid)), "; "));
    return text + fmt::format("ended: {}\n", fmt::join(victims, ", "));
  }

  std::mt19937 random_;
  Scheduler scheduler_;
  TimePoint now_{std::chrono::hours(1)};
  int works_ = 0;
  placement::Rules rules_;
  std::map<std::string, placement::Node> nodes_;
  std::map<std::string, Work> all_;
};

TEST(PolicyEquality, TheSchedulerDecidesAsThePlanDoes) {
  const int histories = std::max(all_steps() / kStepsOfHistory, 1);
  for (unsigned seed = 0; seed < static_cast<unsigned>(histories) && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    TwoPlanners planners(seed);
    for (int step = 0; step < kStepsOfHistory && !HasFailure(); ++step) planners.step();
    planners.decide();
  }
}

}  // namespace
}  // namespace drover::kube::scheduler

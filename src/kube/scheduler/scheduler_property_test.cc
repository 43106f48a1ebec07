// Random histories of small clusters: what must hold whatever happens.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "kube/scheduler/predicates.h"
#include "kube/scheduler/scheduler.h"
#include "placement/testing/clusters.h"

namespace drover::kube::scheduler {
namespace {

/// What an API server would have, changed at random, and a scheduler that is told of it.
class History {
 public:
  /// Who does not name the GPUs of its nodes cannot say which of them are free after a restart either.
  explicit History(unsigned seed) : random_(seed), named_(seed % 3 != 0) {}

  void step() {
    switch (below(10)) {
      case 0:
        return change_node(below(4));
      case 1:
        return remove_pod();
      case 2:
        return settle();
      case 3:
      case 4:
        return decide();
      default:
        return add_work();
    }
  }

  void decide() {
    const auto anew = fresh();
    std::size_t told = 0;
    const auto round = scheduler_.decide(now_, [&](const Start&) { ++told; });
    RC_ASSERT(told == round.starts.size());
    const auto other = anew->decide(now_);
    if (named_) EXPECT_EQ(text(round), text(other));
    now_ += std::chrono::seconds(1);
    for (const auto& start : round.starts) check_start(start);
    for (const auto& start : round.starts)
      for (const auto& binding : start.bindings) decided_[binding.pod.uid] = binding;
    for (const auto& eviction : round.evictions) evicted_.insert(eviction.pod.uid);
    check_gpus();
    check_told(round);
  }

  /// Writes arrive or fail; those who are to end do, or somebody did not let them.
  void settle() {
    for (const auto& [uid, binding] : std::exchange(decided_, {})) {
      const auto found = pods_.find(uid);
      if (found == pods_.end()) continue;
      if (one_in(4)) {
        scheduler_.failed(uid);
        continue;
      }
      found->second.pod.node_name = binding.node;
      found->second.pod.gpus = binding.gpus;
      scheduler_.put_pod(found->second);
    }
    for (const auto& uid : std::exchange(evicted_, {})) {
      if (!pods_.contains(uid)) continue;
      if (one_in(4)) {
        scheduler_.failed(uid);
      } else {
        scheduler_.remove_pod(uid);
        pods_.erase(uid);
      }
    }
  }

 private:
  int below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }
  bool one_in(int count) { return below(count) == 0; }

  void change_node(int number) {
    const auto name = fmt::format("n{}", number);
    if (nodes_.contains(name) && one_in(6)) {
      nodes_.erase(name);
      scheduler_.remove_node(name);
      for (auto pod = pods_.begin(); pod != pods_.end();) {
        const auto decided = decided_.find(pod->first);
        const bool is_on =
            pod->second.pod.node_name == name || (decided != decided_.end() && decided->second.node == name);
        if (is_on) scheduler_.remove_pod(pod->first);
        pod = is_on ? pods_.erase(pod) : std::next(pod);
      }
      return;
    }
    const int gpus = 1 + number % 4 + (number == 3 ? 4 : 0);
    Node node{.name = name};
    node.labels = {{"rack", fmt::format("r{}", number % 2)}};
    Taints taints;
    if (one_in(4)) taints.push_back({"dedicated", "", "NoSchedule"});
    node.taints = std::make_shared<const Taints>(taints);
    node.unschedulable = one_in(8);
    node.allocatable = {.cpu = 8000, .memory = 1 << 30, .others = {{kGpuResource, gpus}}};
    node.most_pods = 6;
    std::optional<gpu::Inventory> inventory;
    if (named_ || number != 2) {
      inventory = placement::testing::node(name, {.count = gpus, .nvlinks = number}).inventory;
      if (one_in(3)) inventory->devices[0].unhealthy = "too hot";
    }
    nodes_[name] = {node, inventory};
    scheduler_.put_node(node, inventory);
  }

  void add_work() {
    const int size = one_in(3) ? 1 + below(3) : 1;
    const auto name = fmt::format("w{}", works_++);
    PodTemplate made{.scheduler_name = one_in(12) ? "default-scheduler" : "drover", .priority = below(3)};
    made.requests = {.cpu = 500 * below(6), .memory = 1 << 20};
    if (const int gpus = below(4); gpus > 0) made.requests.others[kGpuResource] = gpus;
    if (one_in(4)) made.ports = {{.port = 80 + below(2)}};
    if (one_in(3)) made.tolerations = {{.key = "dedicated", .operation = "Exists"}};
    if (one_in(6))
      made.anti_affinity = {{.topology_key = "rack", .namespaces = {"team"}, .selector = {.nothing = false}}};
    made.preempts = true;
    for (int rank = 0; rank < size; ++rank) {
      PodObject object;
      object.pod.uid = fmt::format("{}-{}", name, rank);
      object.pod.name_space = "team";
      object.pod.name = object.pod.uid;
      object.pod.created = TimePoint(std::chrono::seconds(works_));
      object.pod.labels = std::make_shared<const Labels>();
      object.pod.made_from = std::make_shared<const PodTemplate>(made);
      if (size > 1)
        object.gang = GangMember{.gang = {GangKind::kDrover, "team", name}, .rank = {rank}, .size = size};
      pods_[object.pod.uid] = object;
      scheduler_.put_pod(object);
    }
  }

  void remove_pod() {
    if (pods_.empty()) return;
    const auto uid = std::next(pods_.begin(), below(static_cast<int>(pods_.size())))->first;
    pods_.erase(uid);
    scheduler_.remove_pod(uid);
  }

  /// One that has just begun, and sees what was decided as done.
  std::unique_ptr<Scheduler> fresh() {
    auto scheduler = std::make_unique<Scheduler>();
    std::vector<std::function<void()>> told;
    for (const auto& [name, node] : nodes_)
      told.emplace_back([&, pair = &node] { scheduler->put_node(pair->first, pair->second); });
    for (const auto& [uid, object] : pods_)
      told.emplace_back([&, pod = seen(object)] { scheduler->put_pod(pod); });
    std::ranges::shuffle(told, random_);
    for (const auto& tell : told) tell();
    return scheduler;
  }

  PodObject seen(PodObject object) const {
    const auto& uid = object.pod.uid;
    if (const auto found = decided_.find(uid); found != decided_.end()) {
      object.pod.node_name = found->second.node;
      object.pod.gpus = found->second.gpus;
    }
    object.pod.terminating = object.pod.terminating || evicted_.contains(uid);
    return object;
  }

  static std::string text(const Round& round) {
    std::string text;
    for (const auto& start : round.starts)
      for (const auto& binding : start.bindings)
        text += fmt::format("{} {} {}\n", binding.pod.uid, binding.node, fmt::join(binding.gpus, ","));
    for (const auto& [uid, reasons] : round.waiting)
      text += fmt::format("{} waits: {}\n", uid, fmt::join(placement::describe(reasons), "; "));
    std::set<std::string> evictions;
    for (const auto& eviction : round.evictions) evictions.insert(eviction.pod.uid);
    return text + fmt::format("evicted {}\n", fmt::join(evictions, " "));
  }

  /// Whole gangs, where all filters let them, beside all that is bound or decided.
  void check_start(const Start& start) {
    const auto& first = pods_.at(start.bindings.front().pod.uid);
    if (first.gang) {
      const auto is_bound = [&](const auto& pod) {
        return pod.second.gang && pod.second.gang->gang == first.gang->gang &&
               !seen(pod.second).pod.node_name.empty();
      };
      const auto before = std::ranges::count_if(pods_, is_bound);
      EXPECT_GE(before + static_cast<long>(start.bindings.size()), *first.gang->size) << first.pod.uid;
    }
    Cluster cluster;
    for (const auto& [name, node] : nodes_) cluster.put_node(node.first);
    for (const auto& [uid, object] : pods_) cluster.put_pod(seen(object).pod);
    for (const auto& binding : start.bindings) {
      auto pod = pods_.at(binding.pod.uid).pod;
      const auto verdict = Predicates(cluster, pod).check(cluster.nodes().at(binding.node));
      EXPECT_TRUE(verdict.fits()) << pod.uid << " on " << binding.node << ": "
                                  << (verdict.fits() ? "" : verdict.reasons.front());
      pod.node_name = binding.node;
      cluster.put_pod(pod);
      decided_[binding.pod.uid] = binding;  // for the ones after it
    }
  }

  void check_gpus() {
    std::set<std::string> taken;
    for (const auto& [uid, object] : pods_) {
      const auto pod = seen(object).pod;
      if (pod.node_name.empty()) continue;
      const auto wanted = pod.made_from->requests.others.find(kGpuResource);
      const auto& gpus = nodes_.at(pod.node_name).second;
      if (gpus && pod.made_from->scheduler_name == "drover")
        EXPECT_EQ(pod.gpus.size(), wanted == pod.made_from->requests.others.end() ? 0 : wanted->second)
            << uid;
      for (const auto& uuid : pod.gpus) {
        EXPECT_TRUE(taken.insert(uuid).second) << uuid << " was given twice";
        EXPECT_TRUE(uuid.starts_with(pod.node_name + "-")) << uuid;
      }
    }
  }

  void check_told(const Round& round) {
    for (const auto& [uid, object] : pods_) {
      const bool waits =
          seen(object).pod.node_name.empty() && object.pod.made_from->scheduler_name == "drover";
      EXPECT_EQ(round.waiting.contains(uid), waits) << uid;
      if (round.waiting.contains(uid)) EXPECT_FALSE(round.waiting.at(uid).list.empty()) << uid;
    }
    EXPECT_EQ(round.waiting.size(), round.order.size() + round.held.size());
  }

  std::mt19937 random_;
  bool named_;
  Scheduler scheduler_;
  TimePoint now_{std::chrono::hours(1)};
  int works_ = 0;
  std::map<std::string, std::pair<Node, std::optional<gpu::Inventory>>> nodes_;
  std::map<std::string, PodObject> pods_;  ///< as the API server has them
  std::map<std::string, Binding> decided_;
  std::set<std::string> evicted_;
};

TEST(SchedulerProperty, HoldsThroughRandomHistories) {
  for (unsigned seed = 0; seed < 150 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    for (int step = 0; step < 60 && !HasFailure(); ++step) history.step();
  }
}

}  // namespace
}  // namespace drover::kube::scheduler

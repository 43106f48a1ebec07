#pragma once

// Situations in which a pod waits: what there is, what it is told, and what helps. What is told begins as
// people know it and counts every node once; and what is named helps.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "kube/scheduler/scheduler.h"
#include "kube/scheduler/testing/objects.h"
#include "kube/scheduler/unschedulable.h"

namespace drover::kube::scheduler::testing {

inline constexpr const char* kJob = "job";
inline const Wants kOne{.gpus = 1}, kTwo{.gpus = 2}, kFour{.gpus = 4};
inline void nothing(PodTemplate&) {}
inline void no_change(Node&) {}

/// A cluster of one test, and the pod "job" in it, which is asked about.
class Place {
 public:
  void node(const std::string& name, int gpus, const std::function<void(Node&)>& change = no_change) {
    auto node = gpu_node(name, gpus);
    change(node);
    scheduler.put_node(node, gpus_of(name, gpus));
  }
  void taint(const std::string& name, int gpus, Taints taints) {
    node(name, gpus, [&](Node& node) { node.taints = std::make_shared<const Taints>(std::move(taints)); });
  }
  void labelled(const std::string& name, int gpus, const std::string& key, const std::string& value) {
    node(name, gpus, [&](Node& node) { node.labels[key] = value; });
  }

  /// Has its node already.
  void runs(const std::string& name, const std::string& on, int gpus,
            const std::function<void(PodTemplate&)>& change = nothing, Wants wants = {}) {
    wants.gpus = gpus;
    PodObject object{changed(asking_pod(name, wants), change)};
    object.pod.node_name = on;
    object.queues = queues;
    scheduler.put_pod(object);
  }
  void ends(const std::string& name) { scheduler.remove_pod("uid-" + name); }

  /// Of a gang of so many: all of them wait.
  void job(const Wants& wants, const std::function<void(PodTemplate&)>& change = nothing, int gang = 1) {
    for (int rank = 0; rank < gang; ++rank) {
      auto pod = changed(asking_pod(rank == 0 ? kJob : fmt::format("{}-{}", kJob, rank), wants), change);
      edit(pod);
      PodObject object{pod};
      object.queues = queues;
      if (gang_of) object.gang = gang_of(rank, gang);
      if (!gang_of && gang > 1)
        object.gang = GangMember{.gang = {GangKind::kDrover, "team", kJob}, .rank = {rank}, .size = gang};
      scheduler.put_pod(object);
    }
  }
  /// Its owner makes it anew.
  void again(const Wants& wants, const std::function<void(PodTemplate&)>& change = nothing, int gang = 1) {
    for (int rank = 0; rank < 64; ++rank)
      scheduler.remove_pod(rank == 0 ? fmt::format("uid-{}", kJob) : fmt::format("uid-{}-{}", kJob, rank));
    job(wants, change, gang);
  }
  void first(const std::string& name, const Wants& wants) {
    auto pod = asking_pod(name, wants);
    pod.created = TimePoint(std::chrono::seconds(1));
    PodObject object{pod};
    object.queues = queues;
    scheduler.put_pod(object);
  }

  Scheduler scheduler;
  QueueNames queues;
  std::function<GangMember(int rank, int size)> gang_of;
  std::function<void(Pod&)> edit = [](Pod&) {};
};

struct Situation {
  const char* name;
  std::function<void(Place&)> make;
  std::vector<const char*> says;  ///< the remedy among it, where there is one
  std::function<void(Place&)> remedy;
  const char* says_not = nullptr;  ///< what would not help
};

/// "0/3 nodes are available: 2 Insufficient cpu, 1 node(s) were unschedulable." → 3
inline int counted_nodes(const std::string& message) {
  const auto begin = message.find(": ") + 2;
  std::istringstream words(message.substr(begin, message.find(". ", begin) - begin));
  int sum = 0;
  for (std::string part; std::getline(words, part, ',');)
    sum += std::atoi(part.c_str() + (part[0] == ' ' ? 1 : 0));
  return sum;
}

inline std::string said_to(Scheduler& scheduler, const Round& round, const std::string& pod) {
  for (const auto& waiter : scheduler.waiters(round))
    if (waiter.pod.name == pod) return unschedulable_message(waiter.why, kGpuResource);
  return "";
}

inline void check(const Situation& situation) {
  SCOPED_TRACE(situation.name);
  Place place;
  situation.make(place);
  auto round = place.scheduler.decide(kMoment);
  const auto message = said_to(place.scheduler, round, kJob);
  const auto nodes =
      static_cast<int>(round.waiting.empty() ? 0 : place.scheduler.waiters(round).front().why.nodes);
  if (nodes == 0) {
    EXPECT_EQ(message.find("No nodes available"), 0U) << message;
  } else {
    EXPECT_EQ(message.find(fmt::format("0/{} nodes are available: ", nodes)), 0U) << message;
    EXPECT_EQ(counted_nodes(message), nodes) << message;
  }
  EXPECT_LE(message.size(), kLongestMessage);
  for (const auto* words : situation.says) EXPECT_THAT(message, ::testing::HasSubstr(words));
  if (situation.says_not != nullptr)
    EXPECT_THAT(message, ::testing::Not(::testing::HasSubstr(situation.says_not)));
  situation.remedy(place);
  bool starts = false;
  for (int i = 0; i < 3; ++i) {
    round = place.scheduler.decide(kMoment + std::chrono::seconds(i));
    for (const auto& start : round.starts)
      for (const auto& binding : start.bindings) starts = starts || binding.pod.name == kJob;
  }
  EXPECT_TRUE(starts) << "after: " << message << "\nnow: " << said_to(place.scheduler, round, kJob);
}

}  // namespace drover::kube::scheduler::testing

#include "kube/scheduler/scheduler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "placement/testing/clusters.h"

namespace drover::kube::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr TimePoint kMoment{std::chrono::hours(1)};

Node gpu_node(const std::string& name, std::int64_t gpus = 4) {
  Node node{.name = name};
  node.labels = {{"kubernetes.io/hostname", name}};
  node.taints = std::make_shared<const Taints>();
  node.allocatable = {.cpu = 16'000, .memory = 64LL << 30, .others = {{kGpuResource, gpus}}};
  node.most_pods = 110;
  return node;
}

Node tainted_node(Node node, const std::string& key) {
  node.taints = std::make_shared<const Taints>(Taints{{key, "", "NoSchedule"}});
  return node;
}

/// Every two GPUs "<name>-0" … are joined by `nvlinks`, or none.
gpu::Inventory gpus_of(const std::string& name, int count, int nvlinks = 0) {
  return placement::testing::node(name, {.count = count, .nvlinks = nvlinks}).inventory;
}

struct Wants {
  std::int64_t gpus = 0;
  std::int64_t priority = 0;
  std::string scheduler = "drover";
};

Pod asking_pod(const std::string& name, const Wants& wants) {
  PodTemplate made{.scheduler_name = wants.scheduler, .priority = wants.priority};
  made.requests = {.cpu = 1000, .memory = 1 << 20};
  if (wants.gpus > 0) made.requests.others[kGpuResource] = wants.gpus;
  Pod pod{.uid = "uid-" + name, .name_space = "team", .name = name};
  pod.created = TimePoint(std::chrono::seconds(10));
  pod.labels = std::make_shared<const Labels>();
  pod.made_from = std::make_shared<const PodTemplate>(std::move(made));
  return pod;
}

Pod bound_pod(Pod pod, const std::string& node, std::vector<std::string> gpus = {}) {
  pod.node_name = node;
  pod.gpus = std::move(gpus);
  return pod;
}

template <typename Change>
Pod changed(Pod pod, const Change& change) {
  auto made = *pod.made_from;
  change(made);
  pod.made_from = std::make_shared<const PodTemplate>(std::move(made));
  return pod;
}

/// "train on a: a-0 a-1" for each that starts.
std::vector<std::string> started(const Round& round) {
  std::vector<std::string> lines;
  for (const auto& start : round.starts)
    for (const auto& binding : start.bindings) {
      auto line = fmt::format("{} on {}:", binding.pod.name, binding.node);
      for (const auto& gpu : binding.gpus) line += " " + gpu;
      lines.push_back(std::move(line));
    }
  return lines;
}

std::vector<std::string> reasons_of(const Round& round, const std::string& name) {
  const auto found = round.waiting.find("uid-" + name);
  return found == round.waiting.end() ? std::vector<std::string>{} : placement::describe(found->second);
}

TEST(Scheduler, BindsToTheBestJoinedGpusThatAreFree) {
  Scheduler scheduler;
  auto gpus = gpus_of("a", 4);
  gpus.links[1][3].nvlinks = gpus.links[3][1].nvlinks = 2;
  scheduler.put_node(gpu_node("a"), gpus);
  scheduler.put_pod(asking_pod("train", {.gpus = 2}));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("train on a: a-1 a-3"));
  scheduler.put_pod(asking_pod("next", {.gpus = 2}));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("next on a: a-0 a-2"));
  scheduler.put_pod(asking_pod("late", {.gpus = 1}));
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "late"),
              ElementsAre("1 GPU is wanted and 0 of 4 are free"));
}

TEST(Scheduler, DecidedIsDoneUntilItHasFailed) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 2), gpus_of("a", 2));
  const auto pod = asking_pod("train", {.gpus = 2});
  scheduler.put_pod(pod);
  EXPECT_THAT(started(scheduler.decide(kMoment)), SizeIs(1));
  scheduler.put_pod(pod);  // its status has changed, and nobody has seen the binding yet
  EXPECT_THAT(started(scheduler.decide(kMoment)), IsEmpty());
  scheduler.failed("uid-train");
  EXPECT_THAT(started(scheduler.decide(kMoment)), SizeIs(1));
  scheduler.put_pod(bound_pod(pod, "a", {"a-0", "a-1"}));
  scheduler.failed("uid-train");  // too late: it is there
  EXPECT_THAT(started(scheduler.decide(kMoment)), IsEmpty());
  scheduler.remove_pod("uid-train");
  scheduler.put_pod(asking_pod("next", {.gpus = 2}));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("next on a: a-0 a-1"));
}

TEST(Scheduler, SomebodyElseMayHaveBoundItElsewhere) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 1), gpus_of("a", 1));
  scheduler.put_node(gpu_node("b", 1), gpus_of("b", 1));
  const auto pod = asking_pod("train", {.gpus = 1});
  scheduler.put_pod(pod);
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("train on a: a-0"));
  scheduler.put_pod(bound_pod(pod, "b"));
  scheduler.put_pod(asking_pod("next", {.gpus = 1}));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("next on a: a-0"));
}

TEST(Scheduler, PodsOfOthersTakeWhatTheyHave) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  scheduler.put_pod(bound_pod(asking_pod("unsaid", {.gpus = 1, .scheduler = "default-scheduler"}), "a"));
  scheduler.put_pod(
      bound_pod(asking_pod("said", {.gpus = 1, .scheduler = "default-scheduler"}), "a", {"a-0"}));
  scheduler.put_pod(asking_pod("theirs", {.gpus = 1, .scheduler = "default-scheduler"}));
  scheduler.put_pod(asking_pod("ours", {.gpus = 2}));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("ours on a: a-2 a-3"));
}

TEST(Scheduler, CountsGpusOfANodeThatDoesNotNameThem) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 2));
  scheduler.put_pod(asking_pod("one", {.gpus = 1}));
  scheduler.put_pod(asking_pod("two", {.gpus = 1}));
  scheduler.put_pod(asking_pod("three", {.gpus = 1}));
  EXPECT_THAT(started(scheduler.decide(kMoment)), SizeIs(2));
}

TEST(Scheduler, GivesNoGpusThatANodeDoesNotOffer) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 0), gpus_of("a", 2));
  scheduler.put_pod(asking_pod("train", {.gpus = 1}));
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "train"),
              ElementsAre("1 GPU is wanted and 0 of 2 are free, 2 unfit"));
  scheduler.put_node(gpu_node("a", 1), gpus_of("a", 2));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("train on a: a-0"));
}

TEST(Scheduler, SaysWhatKeepsItOffEveryNode) {
  Scheduler scheduler;
  scheduler.put_node(tainted_node(gpu_node("a"), "dedicated"), gpus_of("a", 4));
  auto cordoned = gpu_node("b");
  cordoned.unschedulable = true;
  scheduler.put_node(cordoned, gpus_of("b", 4));
  scheduler.put_node(gpu_node("c", 1), gpus_of("c", 1));
  scheduler.put_pod(asking_pod("train", {.gpus = 2}));
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "train"),
              ElementsAre("3 nodes: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, "
                          "1 has fewer than 2 GPUs (has 1)"));
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("train on a: a-0 a-1"));
}

TEST(Scheduler, LeavesAloneWhatIsNotToBePlanned) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  scheduler.put_pod(
      changed(asking_pod("gated", {.gpus = 1}), [](auto& made) { made.scheduling_gates = {"wait"}; }));
  auto ending = asking_pod("ending", {.gpus = 1});
  ending.terminating = true;
  scheduler.put_pod(ending);
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, IsEmpty());
  EXPECT_THAT(round.waiting, IsEmpty());
}

TEST(Scheduler, TellsOfWhatItDoesNotSupport) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  scheduler.put_pod(changed(asking_pod("claims", {}), [](auto& made) { made.resource_claims = {"gpus"}; }));
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "claims"),
              ElementsAre("asks for devices by resource claims, which only the default scheduler can give"));
}

TEST(Scheduler, TwoThatWantTheSamePortAreNotOnOneNode) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  const auto listens = [](auto& made) { made.ports = {{.port = 80}}; };
  scheduler.put_pod(changed(asking_pod("one", {}), listens));
  scheduler.put_pod(changed(asking_pod("two", {}), listens));
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, SizeIs(1));
  EXPECT_TRUE(round.again);
  const auto next = scheduler.decide(kMoment);
  EXPECT_THAT(next.starts, IsEmpty());
  EXPECT_FALSE(next.again);
  EXPECT_THAT(next.waiting, SizeIs(1));
  EXPECT_THAT(placement::describe(next.waiting.begin()->second),
              ElementsAre("node(s) didn't have free ports for the requested pod ports"));
}

TEST(Scheduler, EvictsTheFewestOnceForWhomIsMoreUrgent) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  scheduler.put_pod(bound_pod(asking_pod("small", {.gpus = 1}), "a", {"a-0"}));
  scheduler.put_pod(bound_pod(asking_pod("large", {.gpus = 3}), "a", {"a-1", "a-2", "a-3"}));
  scheduler.put_pod(asking_pod("urgent", {.gpus = 2, .priority = 5}));
  auto round = scheduler.decide(kMoment);
  ASSERT_THAT(round.evictions, SizeIs(1));
  EXPECT_EQ(round.evictions[0].pod.name, "large");
  EXPECT_EQ(round.evictions[0].job, "uid-urgent");
  EXPECT_THAT(scheduler.decide(kMoment).evictions, IsEmpty());
  scheduler.failed("uid-large");
  EXPECT_THAT(scheduler.decide(kMoment).evictions, SizeIs(1));
  auto ending = bound_pod(asking_pod("large", {.gpus = 3}), "a", {"a-1", "a-2", "a-3"});
  ending.terminating = true;
  scheduler.put_pod(ending);
  EXPECT_THAT(scheduler.decide(kMoment).evictions, IsEmpty());
  scheduler.remove_pod("uid-large");
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("urgent on a: a-1 a-2"));
}

TEST(Scheduler, ANodeThatIsGoneTakesNothingAndComesBack) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  scheduler.put_pod(bound_pod(asking_pod("old", {.gpus = 1}), "a", {"a-0"}));
  scheduler.remove_node("a");
  scheduler.put_pod(asking_pod("new", {.gpus = 1}));
  EXPECT_THAT(started(scheduler.decide(kMoment)), IsEmpty());
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("new on a: a-1"));
}

TEST(Scheduler, PodsMayBeKnownBeforeTheirNodes) {
  Scheduler scheduler;
  scheduler.put_pod(bound_pod(asking_pod("old", {.gpus = 1}), "a", {"a-0"}));
  scheduler.put_pod(bound_pod(asking_pod("unsaid", {.gpus = 1}), "a"));
  scheduler.put_pod(asking_pod("new", {.gpus = 2}));
  EXPECT_THAT(started(scheduler.decide(kMoment)), IsEmpty());
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("new on a: a-2 a-3"));
}

TEST(Scheduler, WhoBeginsAnewDecidesTheSame) {
  for (const bool backwards : {false, true}) {
    Scheduler scheduler;
    std::vector<std::string> names{"a", "b", "c"};
    if (backwards) std::ranges::reverse(names);
    for (const auto& name : names) {
      scheduler.put_node(gpu_node(name), gpus_of(name, 4));
      scheduler.put_pod(asking_pod("p" + name, {.gpus = 2}));
    }
    EXPECT_THAT(started(scheduler.decide(kMoment)),
                UnorderedElementsAre("pa on a: a-0 a-1", "pb on a: a-2 a-3", "pc on b: b-0 b-1"))
        << backwards;
  }
}

}  // namespace
}  // namespace drover::kube::scheduler

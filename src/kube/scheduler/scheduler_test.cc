#include "kube/scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "kube/scheduler/testing/objects.h"

namespace drover::kube::scheduler {
namespace {

using testing::asking_pod;
using testing::changed;
using ::testing::ElementsAre;
using testing::gang_pod;
using testing::gpu_node;
using testing::gpus_of;
using ::testing::IsEmpty;
using testing::kMoment;
using testing::reasons_of;
using ::testing::SizeIs;
using testing::started;
using ::testing::UnorderedElementsAre;
using testing::Wants;

Node tainted_node(Node node, const std::string& key) {
  node.taints = std::make_shared<const Taints>(Taints{{key, "", "NoSchedule"}});
  return node;
}

Pod bound_pod(Pod pod, const std::string& node, std::vector<std::string> gpus = {}) {
  pod.node_name = node;
  pod.gpus = std::move(gpus);
  return pod;
}

TEST(Scheduler, BindsToTheBestJoinedGpusThatAreFree) {
  Scheduler scheduler;
  auto gpus = gpus_of("a", 4);
  gpus.links[1][3].nvlinks = gpus.links[3][1].nvlinks = 2;
  scheduler.put_node(gpu_node("a"), gpus);
  scheduler.put_pod({asking_pod("train", {.gpus = 2})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("train on a: a-1 a-3"));
  scheduler.put_pod({asking_pod("next", {.gpus = 2})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("next on a: a-0 a-2"));
  scheduler.put_pod({asking_pod("late", {.gpus = 1})});
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "late"),
              ElementsAre("1 GPU is wanted and 0 of 4 are free"));
}

TEST(Scheduler, DecidedIsDoneUntilItHasFailed) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 2), gpus_of("a", 2));
  const auto pod = asking_pod("train", {.gpus = 2});
  scheduler.put_pod({pod});
  EXPECT_THAT(started(scheduler.decide(kMoment)), SizeIs(1));
  scheduler.put_pod({pod});  // its status has changed, and nobody has seen the binding yet
  EXPECT_THAT(started(scheduler.decide(kMoment)), IsEmpty());
  scheduler.failed("uid-train");
  EXPECT_THAT(started(scheduler.decide(kMoment)), SizeIs(1));
  scheduler.put_pod({bound_pod(pod, "a", {"a-0", "a-1"})});
  scheduler.failed("uid-train");  // too late: it is there
  EXPECT_THAT(started(scheduler.decide(kMoment)), IsEmpty());
  scheduler.remove_pod("uid-train");
  scheduler.put_pod({asking_pod("next", {.gpus = 2})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("next on a: a-0 a-1"));
}

TEST(Scheduler, TellsEachStartAsSoonAsItIsDecided) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 4), gpus_of("a", 4));
  for (const auto* name : {"one", "two", "three"}) scheduler.put_pod({asking_pod(name, {.gpus = 1})});
  std::vector<std::string> told;
  std::vector<std::string> bound_then;
  const auto round = scheduler.decide(kMoment, [&](const Start& start) {
    told.push_back(start.bindings.front().pod.name);
    bound_then.push_back(scheduler.node_of("uid-three"));
  });
  std::vector<std::string> all;
  for (const auto& start : round.starts) all.push_back(start.bindings.front().pod.name);
  EXPECT_EQ(told, all);
  EXPECT_THAT(bound_then, SizeIs(3));
  EXPECT_EQ(std::ranges::count(bound_then, ""), std::ranges::find(all, "three") - all.begin());
}

TEST(Scheduler, DecidesAnewOnlyForWhatWaits) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 1), gpus_of("a", 1));
  EXPECT_FALSE(scheduler.has_changed());
  scheduler.put_pod({asking_pod("train", {.gpus = 1})});
  EXPECT_TRUE(scheduler.has_changed());
  EXPECT_THAT(started(scheduler.decide(kMoment)), SizeIs(1));
  scheduler.put_node(gpu_node("b", 1), gpus_of("b", 1));
  EXPECT_FALSE(scheduler.has_changed());
  for (const auto* name : {"next", "late"}) scheduler.put_pod({asking_pod(name, {.gpus = 1})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), SizeIs(1));
  EXPECT_THAT(started(scheduler.decide(kMoment)), IsEmpty());
  EXPECT_FALSE(scheduler.has_changed());
  scheduler.remove_pod("uid-train");
  EXPECT_TRUE(scheduler.has_changed());
}

TEST(Scheduler, SomebodyElseMayHaveBoundItElsewhere) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 1), gpus_of("a", 1));
  scheduler.put_node(gpu_node("b", 1), gpus_of("b", 1));
  const auto pod = asking_pod("train", {.gpus = 1});
  scheduler.put_pod({pod});
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("train on a: a-0"));
  scheduler.put_pod({bound_pod(pod, "b")});
  scheduler.put_pod({asking_pod("next", {.gpus = 1})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("next on a: a-0"));
}

TEST(Scheduler, PodsOfOthersTakeWhatTheyHave) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  scheduler.put_pod({bound_pod(asking_pod("unsaid", {.gpus = 1, .scheduler = "default-scheduler"}), "a")});
  scheduler.put_pod(
      {bound_pod(asking_pod("said", {.gpus = 1, .scheduler = "default-scheduler"}), "a", {"a-0"})});
  scheduler.put_pod({asking_pod("theirs", {.gpus = 1, .scheduler = "default-scheduler"})});
  scheduler.put_pod({asking_pod("ours", {.gpus = 2})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("ours on a: a-2 a-3"));
}

TEST(Scheduler, CountsGpusOfANodeThatDoesNotNameThem) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 2));
  scheduler.put_pod({asking_pod("one", {.gpus = 1})});
  scheduler.put_pod({asking_pod("two", {.gpus = 1})});
  scheduler.put_pod({asking_pod("three", {.gpus = 1})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), SizeIs(2));
}

TEST(Scheduler, GivesNoGpusThatANodeDoesNotOffer) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 0), gpus_of("a", 2));
  scheduler.put_pod({asking_pod("train", {.gpus = 1})});
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
  scheduler.put_pod({asking_pod("train", {.gpus = 2})});
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
      {changed(asking_pod("gated", {.gpus = 1}), [](auto& made) { made.scheduling_gates = {"wait"}; })});
  auto ending = asking_pod("ending", {.gpus = 1});
  ending.terminating = true;
  scheduler.put_pod({ending});
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, IsEmpty());
  EXPECT_THAT(round.waiting, IsEmpty());
}

TEST(Scheduler, TwoThatWantTheSamePortAreNotOnOneNode) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  const auto listens = [](auto& made) { made.ports = {{.port = 80}}; };
  scheduler.put_pod({changed(asking_pod("one", {}), listens)});
  scheduler.put_pod({changed(asking_pod("two", {}), listens)});
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
  scheduler.put_pod({bound_pod(asking_pod("small", {.gpus = 1}), "a", {"a-0"})});
  scheduler.put_pod({bound_pod(asking_pod("large", {.gpus = 3}), "a", {"a-1", "a-2", "a-3"})});
  scheduler.put_pod({asking_pod("urgent", {.gpus = 2, .priority = 5})});
  auto round = scheduler.decide(kMoment);
  ASSERT_THAT(round.evictions, SizeIs(1));
  EXPECT_EQ(round.evictions[0].pod.name, "large");
  EXPECT_EQ(round.evictions[0].job, "uid-urgent");
  EXPECT_EQ(round.evictions[0].winner.name, "urgent");
  EXPECT_FALSE(round.evictions[0].lent);
  EXPECT_THAT(scheduler.decide(kMoment).evictions, IsEmpty());
  scheduler.failed("uid-large");
  EXPECT_THAT(scheduler.decide(kMoment).evictions, SizeIs(1));
  auto ending = bound_pod(asking_pod("large", {.gpus = 3}), "a", {"a-1", "a-2", "a-3"});
  ending.terminating = true;
  scheduler.put_pod({ending});
  EXPECT_THAT(scheduler.decide(kMoment).evictions, IsEmpty());
  scheduler.remove_pod("uid-large");
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("urgent on a: a-1 a-2"));
}

TEST(Scheduler, ANodeThatIsGoneTakesNothingAndComesBack) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  scheduler.put_pod({bound_pod(asking_pod("old", {.gpus = 1}), "a", {"a-0"})});
  scheduler.remove_node("a");
  scheduler.put_pod({asking_pod("new", {.gpus = 1})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), IsEmpty());
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("new on a: a-1"));
}

TEST(Scheduler, PodsMayBeKnownBeforeTheirNodes) {
  Scheduler scheduler;
  scheduler.put_pod({bound_pod(asking_pod("old", {.gpus = 1}), "a", {"a-0"})});
  scheduler.put_pod({bound_pod(asking_pod("unsaid", {.gpus = 1}), "a")});
  scheduler.put_pod({asking_pod("new", {.gpus = 2})});
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
      auto pod = asking_pod("p" + name, {.gpus = 2});
      pod.created = TimePoint(std::chrono::seconds(name[0]));
      scheduler.put_pod({pod});
    }
    EXPECT_THAT(started(scheduler.decide(kMoment)),
                UnorderedElementsAre("pa on a: a-0 a-1", "pb on a: a-2 a-3", "pc on b: b-0 b-1"))
        << backwards;
  }
}

TEST(SchedulerGangs, StartTogetherOrNotAtAll) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  scheduler.put_node(gpu_node("b"), gpus_of("b", 4));
  scheduler.put_pod(gang_pod("train", 3, 0, {.gpus = 2}));
  scheduler.put_pod(gang_pod("train", 3, 1, {.gpus = 2}));
  auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, IsEmpty());
  EXPECT_THAT(reasons_of(round, "train-0"), ElementsAre("waits for 1 of 3 pods of the gang 'team/train'"));
  scheduler.put_pod({bound_pod(asking_pod("other", {.gpus = 3}), "a", {"a-0", "a-1", "a-2"})});
  scheduler.put_pod(gang_pod("train", 3, 2, {.gpus = 2}));
  round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, IsEmpty());
  EXPECT_THAT(round.order, SizeIs(3));
  scheduler.remove_pod("uid-other");
  EXPECT_THAT(started(scheduler.decide(kMoment)),
              ElementsAre("train-0 on a: a-0 a-1", "train-1 on a: a-2 a-3", "train-2 on b: b-0 b-1"));
}

TEST(SchedulerGangs, WhatIsHalfStartedIsFinishedFirst) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  auto half = gang_pod("train", 2, 0, {.gpus = 2});
  half.pod = bound_pod(half.pod, "a", {"a-0", "a-1"});
  scheduler.put_pod(half);
  auto early = asking_pod("early", {.gpus = 2});
  early.created = TimePoint(std::chrono::seconds(1));
  scheduler.put_pod({early});
  scheduler.put_pod(gang_pod("train", 2, 1, {.gpus = 2}));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("train-1 on a: a-2 a-3"));
}

TEST(SchedulerGangs, AreVictimsAsAWhole) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  for (int rank = 0; rank < 2; ++rank) {
    auto member = gang_pod("train", 2, rank, {.gpus = 2});
    member.pod =
        bound_pod(member.pod, "a", {fmt::format("a-{}", 2 * rank), fmt::format("a-{}", 2 * rank + 1)});
    scheduler.put_pod(member);
  }
  scheduler.put_pod({asking_pod("urgent", {.gpus = 1, .priority = 5})});
  EXPECT_THAT(scheduler.decide(kMoment).evictions, SizeIs(2));
  EXPECT_THAT(scheduler.decide(kMoment).evictions, IsEmpty());
}

TEST(SchedulerGangs, WhoKeepEachOtherOffAreSpread) {
  Scheduler scheduler;
  for (const auto* name : {"a", "b"}) scheduler.put_node(gpu_node(name), gpus_of(name, 4));
  const auto listens = [](auto& made) { made.ports = {{.port = 80}}; };
  for (int rank = 0; rank < 2; ++rank) {
    auto member = gang_pod("train", 2, rank, {.gpus = 1});
    member.pod = changed(member.pod, listens);
    scheduler.put_pod(member);
  }
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("train-0 on a: a-0", "train-1 on b: b-0"));
  for (int rank = 0; rank < 2; ++rank) {
    auto member = gang_pod("more", 2, rank, {.gpus = 1});
    member.pod = changed(member.pod, listens);
    scheduler.put_pod(member);
  }
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, IsEmpty());
  EXPECT_FALSE(round.again);
}

TEST(SchedulerGangs, StayInOneDomainOfTheirTopology) {
  Scheduler scheduler;
  for (const auto* name : {"a", "b", "c", "d"}) {
    auto node = gpu_node(name);
    node.labels["rack"] = *name <= 'b' ? "r1" : "r2";
    scheduler.put_node(node, gpus_of(name, 4));
  }
  scheduler.put_pod({bound_pod(asking_pod("other", {.gpus = 1}), "a", {"a-0"})});
  const Resource groups{"scheduling.x-k8s.io", "v1alpha1", "podgroups"};
  for (int rank = 0; rank < 2; ++rank) {
    auto member = gang_pod("train", 2, rank, {.gpus = 4});
    member.gang->size.reset();
    member.gang->object = GangObject{groups, "PodGroup", "train"};
    scheduler.put_pod(member);
  }
  GangGroup group;
  group.minimum = 2;
  group.topology_key = "rack";
  scheduler.gangs().put_object(groups, "team", "train", group);
  EXPECT_THAT(started(scheduler.decide(kMoment)),
              ElementsAre("train-0 on c: c-0 c-1 c-2 c-3", "train-1 on d: d-0 d-1 d-2 d-3"));
}

TEST(SchedulerGangs, HaveOnePlaceInTheQueueAndOneVoice) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 2), gpus_of("a", 2));
  scheduler.put_pod({bound_pod(asking_pod("other", {.gpus = 1}), "a", {"a-0"})});
  auto first = asking_pod("first", {.gpus = 2});
  first.created = TimePoint(std::chrono::seconds(1));
  scheduler.put_pod({first});
  for (int rank = 0; rank < 3; ++rank) scheduler.put_pod(gang_pod("train", 3, rank, {.gpus = 1}));
  auto last = asking_pod("last", {.gpus = 2});
  last.created = TimePoint(std::chrono::seconds(20));
  scheduler.put_pod({last});
  scheduler.put_pod(gang_pod("few", 2, 0, {.gpus = 1}));  // it may not be planned: it stands nowhere
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.held, ElementsAre("uid-few-0"));
  std::vector<std::string> told;
  for (const auto& waiter : scheduler.waiters(round))
    told.push_back(fmt::format("{} {} of {}{}", waiter.pod.name, waiter.why.place, waiter.why.of,
                               waiter.speaks ? ", speaks" : ""));
  EXPECT_THAT(told, ElementsAre("first 1 of 3, speaks", "train-0 2 of 3, speaks", "train-1 2 of 3",
                                "train-2 2 of 3", "last 3 of 3, speaks", "few-0 0 of 0, speaks"));
}

TEST(SchedulerGangs, TellWhoComesLaterThatHeWaitsForThem) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 1), gpus_of("a", 1));
  for (int rank = 0; rank < 3; ++rank) scheduler.put_pod(gang_pod("train", 2, rank, {.gpus = 1}));
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(reasons_of(round, "train-2"),
              ElementsAre("waits until 2 other pods of the gang 'team/train' have started"));
}

TEST(SchedulerGangs, OfKubernetesTellWhenTheyHaveStarted) {
  const Resource groups{"scheduling.k8s.io", "v1beta1", "podgroups"};
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 2), gpus_of("a", 2));
  for (int rank = 0; rank < 2; ++rank) {
    auto member = gang_pod("train", 2, rank, {.gpus = 1});
    member.gang = GangMember{.gang = {GangKind::kPodGroup, "team", "train"}, .rank = {rank}};
    member.gang->object = GangObject{groups, "PodGroup", "train"};
    scheduler.put_pod(member);
  }
  GangGroup group;
  group.minimum = 2;
  group.uid = "uid-of-group";
  scheduler.gangs().put_object(groups, "team", "train", group);
  EXPECT_THAT(scheduler.decide(kMoment).starts, SizeIs(1));
  EXPECT_THAT(scheduler.started_groups(), IsEmpty());  // nobody has seen the bindings yet
  for (int rank = 0; rank < 2; ++rank) {
    auto member = gang_pod("train", 2, rank, {.gpus = 1});
    member.gang = GangMember{.gang = {GangKind::kPodGroup, "team", "train"}, .rank = {rank}};
    member.gang->object = GangObject{groups, "PodGroup", "train"};
    member.pod = bound_pod(member.pod, "a", {fmt::format("a-{}", rank)});
    scheduler.put_pod(member);
  }
  ASSERT_THAT(scheduler.started_groups(), SizeIs(1));
  EXPECT_EQ(scheduler.started_groups().front().object.uid, "uid-of-group");
  EXPECT_EQ(scheduler.started_groups().front().outcome, GangOutcome::kScheduled);
  scheduler.put_pod({asking_pod("urgent", {.gpus = 1, .priority = 5})});
  EXPECT_THAT(scheduler.decide(kMoment).evictions, SizeIs(2));
  EXPECT_EQ(scheduler.started_groups().front().outcome, GangOutcome::kPreempted);
}

TEST(SchedulerQueues, CountAGangWhereItsObjectPutsIt) {
  const Resource groups{"scheduling.volcano.sh", "v1beta1", "podgroups"};
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  Sharing sharing;
  sharing.rules.queues["small"] = {.path = "small", .limit = {.gpu_milli = 2000}};
  scheduler.set_sharing(sharing);
  for (int rank = 0; rank < 2; ++rank) {
    auto member = gang_pod("train", 2, rank, {.gpus = 1});
    member.gang = GangMember{.gang = {GangKind::kVolcano, "team", "train"}, .rank = {rank}};
    member.gang->object = GangObject{groups, "PodGroup", "train"};
    member.pod = bound_pod(member.pod, "a", {fmt::format("a-{}", rank)});
    scheduler.put_pod(member);
  }
  EXPECT_THAT(scheduler.decide(kMoment).starts, IsEmpty());
  GangGroup group;
  group.minimum = 2;
  group.queue = "small";
  scheduler.gangs().put_object(groups, "team", "train", group);
  scheduler.put_pod({.pod = asking_pod("more", {.gpus = 1}), .queues = {.own = "small", .foreign = {}}});
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, IsEmpty());
  EXPECT_EQ(scheduler.use(round).queues.at("small").held.gpu_milli, 2000);
}

TEST(SchedulerQueues, HoldPodsToTheirLimits) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  Sharing sharing;
  sharing.rules.queues["small"] = {.path = "small", .limit = {.gpu_milli = 2000}};
  scheduler.set_sharing(sharing);
  scheduler.put_pod({.pod = asking_pod("one", {.gpus = 2}), .queues = {.own = "small", .foreign = {}}});
  scheduler.put_pod({.pod = asking_pod("two", {.gpus = 1}), .queues = {.own = "small", .foreign = {}}});
  scheduler.put_pod({.pod = asking_pod("lost", {.gpus = 1}), .queues = {.own = "nowhere", .foreign = {}}});
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, SizeIs(1));
  EXPECT_THAT(reasons_of(round, "two"), SizeIs(1));
  EXPECT_THAT(reasons_of(round, "lost"), ElementsAre(::testing::HasSubstr("nowhere")));
  const auto waiters = scheduler.waiters(round);
  ASSERT_THAT(waiters, SizeIs(2));
  for (const auto& waiter : waiters)
    if (waiter.pod.name == "two") EXPECT_EQ(waiter.why.queue, "small");
}

}  // namespace
}  // namespace drover::kube::scheduler

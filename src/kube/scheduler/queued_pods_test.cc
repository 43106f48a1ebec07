// Pods that another scheduler binds when their turn has come.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/scheduler/scheduler.h"
#include "kube/scheduler/testing/objects.h"

namespace drover::kube::scheduler {
namespace {

using testing::asking_pod;
using testing::changed;
using ::testing::ElementsAre;
using testing::gpu_node;
using testing::gpus_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kMoment;
using testing::reasons_of;
using ::testing::SizeIs;
using testing::started;

Pod gated_pod(const std::string& name, std::int64_t gpus, std::vector<std::string> gates = {kQueueGate}) {
  auto pod = changed(asking_pod(name, {.gpus = gpus, .scheduler = "default-scheduler"}),
                     [&](auto& made) { made.scheduling_gates = gates; });
  pod.release.gated = std::ranges::find(gates, kQueueGate) != gates.end();
  return pod;
}

Pod released_pod(const std::string& name, std::int64_t gpus, const std::string& expected) {
  auto pod = gated_pod(name, gpus, {});
  pod.release = {false, kMoment, expected};
  return pod;
}

class QueuedPods : public ::testing::Test {
 protected:
  QueuedPods() {
    for (const auto* name : {"a", "b"}) scheduler.put_node(gpu_node(name), gpus_of(name, 4));
  }

  /// Whether a pod of ours finds that many GPUs on one node.
  bool is_free(int gpus) {
    scheduler.put_pod({asking_pod("probe", {.gpus = gpus})});
    const bool found = !scheduler.decide(kMoment).starts.empty();
    scheduler.remove_pod("uid-probe");
    return found;
  }

  Scheduler scheduler;
};

TEST_F(QueuedPods, HaveTheirGateOpenedAndAreNotBound) {
  scheduler.put_pod({gated_pod("theirs", 4)});
  const auto round = scheduler.decide(kMoment);
  ASSERT_THAT(round.starts, SizeIs(1));
  const auto& binding = round.starts[0].bindings.at(0);
  EXPECT_TRUE(binding.opens_gate);
  EXPECT_EQ(binding.node, "a");
  EXPECT_THAT(binding.gpus, IsEmpty());
  EXPECT_THAT(scheduler.decide(kMoment).starts, IsEmpty());
}

TEST_F(QueuedPods, WithOtherGatesWaitForThoseFirst) {
  scheduler.put_pod({gated_pod("theirs", 1, {"example.com/wait", kQueueGate})});
  EXPECT_THAT(scheduler.decide(kMoment).starts, IsEmpty());
  scheduler.put_pod({gated_pod("theirs", 1)});
  EXPECT_THAT(scheduler.decide(kMoment).starts, SizeIs(1));
}

TEST_F(QueuedPods, StandInTheQueueWithAllOthers) {
  placement::Queue queue;
  queue.path = "team";
  queue.limit.gpu_milli = 3000;
  Sharing sharing;
  sharing.rules.queues["team"] = queue;
  scheduler.set_sharing(sharing);
  const auto in_queue = [](Pod pod) { return PodObject{std::move(pod), {}, {.own = "team"}}; };
  scheduler.put_pod(in_queue(gated_pod("first", 2)));
  scheduler.decide(kMoment);
  scheduler.put_pod(in_queue(gated_pod("second", 2)));
  scheduler.put_pod(in_queue(asking_pod("ours", {.gpus = 2})));
  auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, IsEmpty());
  EXPECT_THAT(round.waiting, SizeIs(2));
  for (const auto& waiter : scheduler.waiters(round)) EXPECT_EQ(waiter.gated, waiter.pod.name == "second");
  // Also when it runs.
  auto bound = released_pod("first", 2, "a");
  bound.node_name = "b";
  scheduler.put_pod(in_queue(bound));
  EXPECT_THAT(scheduler.decide(kMoment).starts, IsEmpty());
  scheduler.remove_pod("uid-first");
  EXPECT_THAT(scheduler.decide(kMoment).starts, SizeIs(1));
}

TEST_F(QueuedPods, HaveTheirRoomUntilTheyAreBoundWhereverThatIs) {
  scheduler.put_pod({gated_pod("large", 4)});
  scheduler.put_pod({gated_pod("small", 2)});
  EXPECT_THAT(scheduler.decide(kMoment).starts, SizeIs(2));
  EXPECT_TRUE(is_free(2));
  EXPECT_FALSE(is_free(3));
  scheduler.put_pod({released_pod("large", 4, "a")});
  EXPECT_FALSE(is_free(3));
  scheduler.put_pod({released_pod("small", 2, "b")});
  scheduler.remove_pod("uid-large");
  EXPECT_TRUE(is_free(4));
  auto bound = released_pod("small", 2, "b");
  bound.node_name = "a";
  scheduler.put_pod({bound});
  scheduler.put_pod({asking_pod("ours", {.gpus = 4})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("ours on b: b-0 b-1 b-2 b-3"));
}

TEST_F(QueuedPods, GiveTheirRoomBackWhenNobodyBindsThemInTime) {
  scheduler.remove_node("b");
  scheduler.put_pod({gated_pod("theirs", 4)});
  scheduler.decide(kMoment);
  scheduler.put_pod({released_pod("theirs", 4, "a")});
  auto round = scheduler.decide(kMoment + std::chrono::seconds(59));
  EXPECT_THAT(round.lapses, IsEmpty());
  EXPECT_EQ(round.retry_at, kMoment + kReleaseGrace);
  scheduler.put_pod({asking_pod("ours", {.gpus = 4})});
  round = scheduler.decide(kMoment + kReleaseGrace);
  ASSERT_THAT(round.lapses, SizeIs(1));
  EXPECT_EQ(round.lapses[0].pod.name, "theirs");
  EXPECT_EQ(round.lapses[0].node, "a");
  EXPECT_THAT(started(round), ElementsAre("ours on a: a-0 a-1 a-2 a-3"));
  // It is told again and again, and takes nothing before it is bound.
  scheduler.remove_pod("uid-ours");
  scheduler.put_pod({released_pod("theirs", 4, "a")});
  round = scheduler.decide(kMoment + 2 * kReleaseGrace);
  EXPECT_THAT(round.starts, IsEmpty());
  EXPECT_THAT(round.lapses, IsEmpty());
  EXPECT_TRUE(is_free(4));
  auto bound = released_pod("theirs", 4, "a");
  bound.node_name = "a";
  scheduler.put_pod({bound});
  EXPECT_FALSE(is_free(1));
}

TEST_F(QueuedPods, WhoBeginsAnewKeepsTheirRoomToo) {
  scheduler.put_pod({released_pod("theirs", 4, "a")});
  scheduler.put_pod({asking_pod("one", {.gpus = 4})});
  scheduler.put_pod({asking_pod("two", {.gpus = 4})});
  EXPECT_THAT(scheduler.decide(kMoment).starts, SizeIs(1));
  EXPECT_THAT(scheduler.decide(kMoment + kReleaseGrace).starts, SizeIs(1));
}

TEST_F(QueuedPods, WhatIsSaidToHaveBeenReleasedInTheFutureKeepsNothing) {
  auto forged = released_pod("forged", 4, "a");
  forged.release.at = kMoment + std::chrono::hours(24);
  scheduler.put_pod({forged});
  scheduler.decide(kMoment);
  scheduler.put_pod({asking_pod("one", {.gpus = 4})});
  scheduler.put_pod({asking_pod("two", {.gpus = 4})});
  EXPECT_THAT(scheduler.decide(kMoment).starts, SizeIs(2));
}

TEST_F(QueuedPods, WaitOnWhenTheirGateCouldNotBeOpened) {
  scheduler.put_pod({gated_pod("theirs", 4)});
  EXPECT_THAT(scheduler.decide(kMoment).starts, SizeIs(1));
  scheduler.failed("uid-theirs", kMoment + std::chrono::seconds(1));
  EXPECT_THAT(scheduler.decide(kMoment).starts, IsEmpty());
  EXPECT_THAT(scheduler.decide(kMoment + std::chrono::seconds(1)).starts, SizeIs(1));
}

TEST_F(QueuedPods, OfOneGangAreReleasedTogether) {
  const auto member = [](int rank) {
    auto pod = gated_pod(fmt::format("train-{}", rank), 3);
    return PodObject{pod,
                     GangMember{.gang = {GangKind::kDrover, "team", "train"}, .rank = {rank}, .size = 2}};
  };
  scheduler.put_pod(member(0));
  EXPECT_THAT(scheduler.decide(kMoment).starts, IsEmpty());
  scheduler.put_pod(member(1));
  const auto round = scheduler.decide(kMoment);
  ASSERT_THAT(round.starts, SizeIs(1));
  EXPECT_THAT(round.starts[0].bindings, SizeIs(2));
}

TEST_F(QueuedPods, MayUseWhatWeDoNotDecideOn) {
  const auto unsupported = [](auto& made) { made.unsupported = {"uses volumes of the kind 'rbd'"}; };
  scheduler.put_pod({changed(gated_pod("theirs", 1), unsupported)});
  scheduler.put_pod({changed(asking_pod("ours", {.gpus = 1}), unsupported)});
  const auto round = scheduler.decide(kMoment);
  ASSERT_THAT(round.starts, SizeIs(1));
  EXPECT_EQ(round.starts[0].bindings[0].pod.name, "theirs");
  EXPECT_THAT(round.waiting.at("uid-ours").remedies,
              ElementsAre("make it anew for kube-scheduler, with the scheduling gate 'drover.dev/queue'"));
}

TEST_F(QueuedPods, TheGateIsOfNoUseToPodsOfOurs) {
  auto pod =
      changed(asking_pod("ours", {.gpus = 1}), [](auto& made) { made.scheduling_gates = {kQueueGate}; });
  pod.release.gated = true;
  scheduler.put_pod({pod});
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "ours"), ElementsAre(HasSubstr("leave it out")));
}

TEST_F(QueuedPods, AreVictimsAsAllOthersAre) {
  scheduler.remove_node("b");
  auto bound = released_pod("theirs", 4, "a");
  bound.node_name = "a";
  scheduler.put_pod({bound});
  scheduler.put_pod({asking_pod("urgent", {.gpus = 4, .priority = 5})});
  EXPECT_THAT(scheduler.decide(kMoment).evictions, SizeIs(1));
}

}  // namespace
}  // namespace drover::kube::scheduler

#include "kube/scheduler/node_holds.h"

#include <gmock/gmock.h>

#include "kube/scheduler/testing/objects.h"

namespace drover::kube::scheduler {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TimePoint kBegin(100h);
constexpr const char* kFull = "full";

Resources of(std::int64_t cpu) {
  return {.cpu = cpu, .memory = cpu << 20};
}

/// A stranger with one processor has come to a node.
class NodeHoldsTest : public ::testing::Test {
 protected:
  NodeHoldsTest() { holds_.note_stranger(kFull, of(1000), kBegin); }

  bool use(TimePoint now, std::int64_t left = 0) { return holds_.may_use(kFull, of(left), true, now); }
  /// As it comes to be when one of ours wants its room.
  TimePoint held() {
    EXPECT_FALSE(use(kBegin));
    EXPECT_THAT(holds_.changes(true, kBegin).hold, ElementsAre(kFull));
    holds_.note_node(kFull, true, kBegin + 10ms);
    return kBegin + 10ms;
  }

  NodeHolds holds_;
};

TEST_F(NodeHoldsTest, LetsOursHaveNodesToWhichNobodyElseComes) {
  EXPECT_TRUE(holds_.may_use("other", of(0), true, kBegin));
  EXPECT_TRUE(use(kBegin + 61s));
  EXPECT_THAT(holds_.changes(true, kBegin + 61s).hold, IsEmpty());
}

TEST_F(NodeHoldsTest, LetsOursHaveRoomWhereThereIsEnoughForOthersToo) {
  EXPECT_TRUE(use(kBegin, 2000));
  EXPECT_FALSE(use(kBegin, 1999));
}

TEST_F(NodeHoldsTest, HoldsANodeOnceWhenItsRoomIsWanted) {
  EXPECT_FALSE(holds_.may_use(kFull, of(0), false, kBegin));
  EXPECT_THAT(holds_.changes(true, kBegin).hold, IsEmpty());
  EXPECT_FALSE(use(kBegin));
  EXPECT_THAT(holds_.changes(true, kBegin).hold, ElementsAre(kFull));
  EXPECT_FALSE(use(kBegin + 1s));
  EXPECT_THAT(holds_.changes(true, kBegin + 1s).hold, IsEmpty());
}

TEST_F(NodeHoldsTest, AsksAgainWhenNobodyTellsOfTheTaint) {
  EXPECT_FALSE(use(kBegin));
  EXPECT_THAT(holds_.changes(true, kBegin).hold, ElementsAre(kFull));
  EXPECT_FALSE(use(kBegin + 6s));
  EXPECT_THAT(holds_.changes(true, kBegin + 6s).hold, ElementsAre(kFull));
}

TEST_F(NodeHoldsTest, UsesANodeWhenOthersHaveHadTimeToSeeTheTaint) {
  const auto since = held();
  EXPECT_FALSE(use(since + 499ms));
  EXPECT_EQ(holds_.changes(true, since + 499ms).again, since + 500ms);
  EXPECT_TRUE(use(since + 500ms));
}

TEST_F(NodeHoldsTest, LetsGoWhenNobodyWaits) {
  const auto since = held();
  EXPECT_TRUE(use(since + 1s));
  EXPECT_THAT(holds_.changes(false, since + 3s).release, IsEmpty());
  EXPECT_THAT(holds_.changes(false, since + 3001ms).release, ElementsAre(kFull));
  EXPECT_FALSE(use(since + 3002ms));
  holds_.note_node(kFull, false, since + 4s);
  EXPECT_FALSE(use(since + 4s));
  EXPECT_THAT(holds_.changes(true, since + 4s).hold, ElementsAre(kFull));
}

TEST_F(NodeHoldsTest, LetsGoOfWhatIsOfNoUseToThoseWhoWait) {
  const auto since = held();
  EXPECT_THAT(holds_.changes(true, since + 10s).release, IsEmpty());
  EXPECT_THAT(holds_.changes(true, since + 10s + 1ms).release, ElementsAre(kFull));
}

TEST_F(NodeHoldsTest, GivesOthersTheirTurn) {
  const auto since = held();
  for (auto now = since; now <= since + 60s; now += 5s) {
    static_cast<void>(use(now));
    EXPECT_THAT(holds_.changes(true, now).release, IsEmpty());
  }
  const auto end = since + 61s;
  EXPECT_THAT(holds_.changes(true, end).release, ElementsAre(kFull));
  holds_.note_node(kFull, false, end);
  holds_.note_stranger(kFull, of(1000), end);
  EXPECT_FALSE(use(end + 1s));
  const auto changes = holds_.changes(true, end + 1s);
  EXPECT_THAT(changes.hold, IsEmpty());
  EXPECT_EQ(changes.again, end + 15s);
  EXPECT_FALSE(use(end + 15s));
  EXPECT_THAT(holds_.changes(true, end + 15s).hold, ElementsAre(kFull));
}

TEST_F(NodeHoldsTest, LetsGoOfWhatAnEarlierOneHasLeft) {
  NodeHolds anew;
  anew.note_node(kFull, true, {});
  EXPECT_THAT(anew.changes(false, kBegin).release, ElementsAre(kFull));
}

using testing::asking_pod;
using testing::gpu_node;
using testing::gpus_of;
using testing::kMoment;
using testing::started;

/// A pod of ours and a stranger would both fit onto a node on which there are strangers.
class SchedulerHolds : public ::testing::Test {
 protected:
  SchedulerHolds() {
    put_node();
    static_cast<void>(scheduler_.decide(kMoment));
    auto stranger = asking_pod("stranger", {.scheduler = "default-scheduler"});
    stranger.node_name = "a";
    scheduler_.put_pod({stranger});
    scheduler_.put_pod({asking_pod("train", {.gpus = 1})});
  }

  void put_node(const Taints& taints = {}) {
    auto node = gpu_node("a");
    node.allocatable.cpu = 3000;
    node.taints = std::make_shared<const Taints>(taints);
    scheduler_.put_node(node, gpus_of("a", 4));
  }

  Scheduler scheduler_;
};

TEST_F(SchedulerHolds, KeepStrangersOffFirst) {
  const auto round = scheduler_.decide(kMoment);
  EXPECT_THAT(started(round), IsEmpty());
  EXPECT_THAT(round.node_holds.hold, ElementsAre("a"));
  EXPECT_THAT(testing::reasons_of(round, "train"), ElementsAre(::testing::HasSubstr("keep off a node")));
  put_node({{kHeldTaint, "drover", "NoSchedule"}});
  EXPECT_THAT(started(scheduler_.decide(kMoment + 100ms)), IsEmpty());
  EXPECT_THAT(started(scheduler_.decide(kMoment + 1s)), ElementsAre("train on a: a-0"));
  EXPECT_THAT(scheduler_.decide(kMoment + 4s).node_holds.release, ElementsAre("a"));
}

TEST_F(SchedulerHolds, OfAnotherSchedulerKeepOursOff) {
  put_node({{kHeldTaint, "other", "NoSchedule"}});
  EXPECT_THAT(started(scheduler_.decide(kMoment + 1s)), IsEmpty());
}

TEST_F(SchedulerHolds, AreNotWaitedForWhereNobodyMayMakeThem) {
  scheduler_.hold_no_nodes();
  EXPECT_THAT(started(scheduler_.decide(kMoment)), ElementsAre("train on a: a-0"));
}

}  // namespace
}  // namespace drover::kube::scheduler

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/schedule.h"
#include "placement/testing/workplace.h"

namespace drover::placement {
namespace {

using namespace std::chrono_literals;
using namespace placement::testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::vector<std::string> victims(const Plan& plan) {
  std::vector<std::string> ids;
  for (const auto& preemption : plan.preemptions)
    ids.insert(ids.end(), preemption.victims.begin(), preemption.victims.end());
  std::ranges::sort(ids);
  return ids;
}

/// Where its first member is.
std::string node_of(const Workplace& work, const std::string& id) {
  return work.running.at(id).decisions[0].node;
}

TEST(Preemption, TakesLowerPriorityAndStartsWhenItHasGone) {
  Workplace work(1, 2);
  work.run(job("low", gpus(2)));
  work.submit(job("high", gpus(1), 1));
  const auto plan = work.step();
  ASSERT_THAT(plan.preemptions, SizeIs(1));
  EXPECT_EQ(plan.preemptions[0].job, "high");
  EXPECT_THAT(plan.preemptions[0].victims, ElementsAre("low"));
  EXPECT_EQ(why(plan, "high"), "it waits for the end of 1 job that makes room for it");
  work.end("low");
  EXPECT_THAT(started(work.step()), ElementsAre("high"));
}

TEST(Preemption, NeverTakesEqualPriority) {
  Workplace work(1, 2);
  work.run(job("low", gpus(2), 1));
  work.submit(job("high", gpus(1), 1));
  EXPECT_THAT(victims(work.step()), IsEmpty());
}

TEST(Preemption, WhileVictimsEndNobodyElseEndsAndTheRoomIsKept) {
  Workplace work(1, 4);
  work.run(job("a", gpus(2)));
  work.run(job("b", gpus(2)));
  work.submit(job("high", gpus(3), 5));
  EXPECT_THAT(victims(work.step()), ElementsAre("a", "b"));
  work.end("b");
  work.submit(job("beside", gpus(1)));
  work.submit(job("small", gpus(1)));
  work.submit(within(1s, job("short", gpus(1))));
  const auto plan = work.step();
  EXPECT_THAT(victims(plan), IsEmpty());
  EXPECT_THAT(started(plan), ElementsAre("beside"));
  EXPECT_EQ(why(plan, "high"), "it waits for the end of jobs that are being stopped");
  work.end("a");
  EXPECT_THAT(started(work.step()), ElementsAre("high"));
}

TEST(Preemption, WhatVictimsLeaveBesidesServesTheNext) {
  Workplace work(1, 8);
  work.run(job("large", gpus(8)));
  work.submit(job("a", gpus(4), 2));
  work.submit(job("b", gpus(4), 2));
  const auto plan = work.step();
  ASSERT_THAT(plan.preemptions, SizeIs(1));
  EXPECT_EQ(why(plan, "b"), "it waits for the end of jobs that are being stopped");
  work.end("large");
  EXPECT_THAT(started(work.step()), ElementsAre("a", "b"));
}

TEST(Preemption, EndsNobodyWhenItWouldNotRunAllTheSame) {
  Workplace work(1, 4);
  work.run(job("equal", gpus(1), 5));
  work.run(job("low", gpus(3)));
  work.submit(job("four", gpus(4), 5));
  EXPECT_THAT(victims(work.step()), IsEmpty());
}

// Eight GPUs of lower priority, four on each node: ending those that come first in some list frees eight
// GPUs, and the job that needs them on one node waits all the same.
TEST(Preemption, DoesNotEndScatteredWork) {
  Workplace work(2, 8);
  for (int i = 0; i < 4; ++i) {
    work.run(job("x" + std::to_string(i), gpus(1)));
    work.run(job("y" + std::to_string(i), gpus(1)));
  }
  for (int i = 0; i < 8; ++i) work.run(job("z" + std::to_string(i), gpus(1), i < 4 ? 9 : 0));
  work.submit(job("eight", gpus(8), 5));
  const auto plan = work.step();
  ASSERT_FALSE(plan.preemptions.empty());
  const auto gone = victims(plan);
  EXPECT_THAT(gone, SizeIs(8));
  for (const auto& id : gone) EXPECT_EQ(node_of(work, id), node_of(work, gone[0])) << id;
  for (const auto& id : gone) work.end(id);
  EXPECT_THAT(started(work.step()), ElementsAre("eight"));
}

TEST(Preemption, EndsTheFewest) {
  Workplace work(2, 4);
  for (int i = 0; i < 4; ++i) work.run(job("s" + std::to_string(i), gpus(1)));
  work.run(job("large", gpus(4)));
  work.submit(job("four", gpus(4), 1));
  EXPECT_THAT(victims(work.step()), ElementsAre("large"));
}

TEST(Preemption, OfEquallyManyTheLowestPriorityThenTheYoungest) {
  Workplace work(3, 1);
  work.run(job("middle", gpus(1), 2));
  work.now += 1min;
  work.run(job("old", gpus(1), 1));
  work.now += 1min;
  work.run(job("young", gpus(1), 1));
  work.submit(job("high", gpus(1), 3));
  EXPECT_THAT(victims(work.step()), ElementsAre("young"));
  work.submit(job("higher", gpus(1), 3));
  EXPECT_THAT(victims(work.step()), ElementsAre("old"));
}

TEST(Preemption, AGangGoesAsAWhole) {
  Workplace work(2, 2);
  work.run(gang("gang", 4, gpus(1)));
  work.submit(job("high", gpus(1), 1));
  EXPECT_THAT(victims(work.step()), ElementsAre("gang"));
  work.end("gang");
  EXPECT_THAT(started(work.step()), ElementsAre("high"));
}

TEST(Preemption, AGangGetsAllItsRoom) {
  Workplace work(3, 4);
  for (int i = 0; i < 12; ++i) work.run(job("r" + std::to_string(100 + i), gpus(1), i < 4 ? 9 : 0));
  work.submit(gang("gang", 2, gpus(4), 5));
  EXPECT_THAT(victims(work.step()), SizeIs(8));
  for (int i = 4; i < 12; ++i) work.end("r" + std::to_string(100 + i));
  EXPECT_THAT(started(work.step()), ElementsAre("gang"));
}

TEST(Preemption, ALimitKeepsItFromEndingOthers) {
  Workplace work(1, 4);
  work.add(limited("vision", 2));
  work.run(in("vision", job("ours", gpus(2), 5)));
  work.run(job("theirs", gpus(2)));
  work.submit(in("vision", job("high", gpus(2), 5)));
  const auto plan = work.step();
  EXPECT_THAT(victims(plan), IsEmpty());
  EXPECT_EQ(why(plan, "high"), "the queue 'vision' holds 2 of its 2 GPUs");
}

TEST(Preemption, MakesRoomWithinALimit) {
  Workplace work(2, 4);
  work.add(limited("vision", 3));
  work.run(in("vision", job("ours", gpus(2))));
  work.run(job("theirs", gpus(2)));
  work.submit(in("vision", job("high", gpus(2), 5)));
  EXPECT_THAT(victims(work.step()), ElementsAre("ours"));
  EXPECT_THAT(victims(work.step()), IsEmpty());
  work.end("ours");
  EXPECT_THAT(started(work.step()), ElementsAre("high"));
}

TEST(Reclaim, TakesBackWhatWasLent) {
  Workplace work(1, 4);
  work.add(guaranteed("owner", 2));
  for (int i = 0; i < 4; ++i) work.run(in("guest", job("g" + std::to_string(i), gpus(1), 3)));
  work.submit(in("owner", job("a", gpus(1))));
  work.submit(in("owner", job("b", gpus(1))));
  work.submit(in("owner", job("c", gpus(1))));  // beyond the guarantee
  const auto plan = work.step();
  EXPECT_THAT(plan.preemptions, SizeIs(2));
  EXPECT_THAT(victims(plan), SizeIs(2));
  EXPECT_FALSE(plan.waiting.at("c").list.empty());
}

TEST(Reclaim, WhoWasEndedDoesNotTakeItBack) {
  Workplace work(1, 2);
  work.add(guaranteed("owner", 1));
  work.run(in("guest", job("g0", gpus(1), 3)));
  work.run(in("guest", job("g1", gpus(1), 3)));
  work.submit(in("owner", job("a", gpus(1))));
  const auto gone = victims(work.step());
  ASSERT_THAT(gone, SizeIs(1));
  const auto again = work.running.at(gone[0]).job;
  work.end(gone[0]);
  work.submit(again);
  const auto plan = work.step();
  EXPECT_THAT(started(plan), ElementsAre("a"));
  EXPECT_THAT(plan.order, ElementsAre("a", gone[0]));
  EXPECT_THAT(victims(work.step()), IsEmpty());
}

TEST(Reclaim, LeavesOthersTheirGuarantee) {
  Workplace work(1, 4);
  work.add(guaranteed("a", 2));
  work.add(guaranteed("b", 2));
  work.run(in("b", job("b0", gpus(1))));
  work.run(in("b", job("b1", gpus(1))));
  work.run(in("b", job("b2", gpus(1))));
  work.run(in("a", job("a0", gpus(1))));
  work.submit(in("a", job("a1", gpus(1))));
  work.submit(in("a", job("a2", gpus(1))));
  EXPECT_THAT(victims(work.step()), SizeIs(1));  // b keeps two
  work.submit(job("high", gpus(1), 9));
  EXPECT_THAT(victims(work.step()), IsEmpty());  // what is guaranteed is not for higher priority outside
}

TEST(Reclaim, TakesBackALargeJobThatIsPartlyLent) {
  Workplace work(1, 4);
  work.add(guaranteed("a", 2));
  work.add(guaranteed("b", 2));
  work.run(in("b", job("large", gpus(3))));
  work.submit(in("a", job("two", gpus(2))));
  EXPECT_THAT(victims(work.step()), ElementsAre("large"));
}

TEST(Reclaim, CountsOnEveryLevel) {
  Workplace work(1, 4);
  work.add(guaranteed("research", 2));
  work.run(in("guest", job("g0", gpus(1))));
  work.run(in("guest", job("g1", gpus(1))));
  work.run(in("research/vision", job("v0", gpus(1))));
  work.run(in("guest", job("g2", gpus(1))));
  work.submit(in("research/speech", job("s0", gpus(1))));
  work.submit(in("research/speech", job("s1", gpus(1))));
  const auto plan = work.step();
  ASSERT_THAT(plan.preemptions, SizeIs(1));  // not from its sibling, which shares the guarantee
  EXPECT_EQ(plan.preemptions[0].job, "s0");
  EXPECT_EQ(plan.preemptions[0].victims[0][0], 'g');
}

}  // namespace
}  // namespace drover::placement

#include "placement/schedule/reservation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/schedule/draining.h"
#include "placement/testing/workplace.h"

namespace drover::placement::schedule {
namespace {

using namespace std::chrono_literals;
using namespace placement::testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Runners = std::vector<const RunningJob*>;

std::vector<std::string> ids(const Runners& runners) {
  std::vector<std::string> result;
  for (const auto* running : runners) result.push_back(running->job.id);
  std::ranges::sort(result);
  return result;
}

struct Question {
  Workplace work;
  Runners before;
  Runners behind;
  Runners preemptable;

  Question(int nodes, int gpus_each) : work(nodes, gpus_each) {}

  /// Runs on this node.
  const RunningJob* run(const Job& job, const std::string& node, std::chrono::milliseconds age = 1min) {
    const auto& request = job.gang.members.front();
    const auto decision = std::get<Decision>(work.cluster.place_on(node, request));
    if (!work.cluster.allocate(job.id, request, decision)) throw std::logic_error(job.id);
    return &(work.running[job.id] = {job, {decision}, work.now - age});
  }

  std::optional<Reservation> ask(const Gang& gang) const {
    Cluster world = work.cluster;
    return earliest_start(world, {gang, before, behind, preemptable, work.now});
  }
};

TEST(Reservation, IsWhenEnoughTimeLimitsHaveCome) {
  Question question(2, 4);
  question.before = {question.run(within(30min, job("a", gpus(4))), "n0"),
                     question.run(within(20min, job("b", gpus(2))), "n1"),
                     question.run(within(10min, job("c", gpus(2))), "n1")};
  const auto found = question.ask(job("w", gpus(4)).gang);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at, question.work.now - 1min + 20min);
  EXPECT_EQ(found->decisions[0].node, "n1");
  EXPECT_THAT(ids(found->gone), ElementsAre("b", "c"));
}

TEST(Reservation, CountsAlsoThoseWhoCameLater) {
  Question question(1, 4);
  question.before = {question.run(within(30min, job("a", gpus(3))), "n0")};
  question.behind = {question.run(within(40min, job("b", gpus(1))), "n0")};
  EXPECT_EQ(question.ask(job("w", gpus(3)).gang)->at, question.work.now + 29min);
  EXPECT_EQ(question.ask(job("w", gpus(4)).gang)->at, question.work.now + 39min);
}

TEST(Reservation, WhoIsOverTimeEndsNow) {
  Question question(1, 4);
  question.before = {question.run(within(30min, job("a", gpus(4))), "n0", 50min)};
  EXPECT_EQ(question.ask(job("w", gpus(4)).gang)->at, question.work.now);
}

TEST(Reservation, WhatIsExpectedTakesThePlaceOfTimeLimits) {
  Question question(1, 4);
  auto expected = job("a", gpus(3));
  expected.expected = 20min;
  question.before = {question.run(expected, "n0"), question.run(within(40min, job("b", gpus(1))), "n0")};
  const auto soon = question.ask(job("w", gpus(3)).gang), later = question.ask(job("w", gpus(4)).gang);
  EXPECT_EQ(soon->at, question.work.now - 1min + 20min);
  EXPECT_TRUE(soon->estimated);
  EXPECT_EQ(later->at, question.work.now - 2min + 40min + 1min);
}

TEST(Reservation, WithoutTimeLimitsWaitsForThoseInTheWay) {
  Question question(2, 4);
  question.before = {question.run(job("a", gpus(2)), "n0"), question.run(job("b", cpu_only(1000)), "n0"),
                     question.run(job("c", gpus(4)), "n1", 50h)};
  const auto found = question.ask(job("w", gpus(4)).gang);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->at);
  EXPECT_THAT(ids(found->gone), ElementsAre("a"));
}

TEST(Reservation, WaitsForThoseWhoStandBeforeItThoughOthersMightEndSooner) {
  Question question(2, 4);
  question.before = {question.run(job("old", gpus(4)), "n0", 50h)};
  question.behind = {question.run(job("new", gpus(4)), "n1")};
  EXPECT_THAT(ids(question.ask(job("w", gpus(4)).gang)->gone), ElementsAre("old"));
  question.before.clear();
  EXPECT_THAT(ids(question.ask(job("w", gpus(4)).gang)->gone), ElementsAre("new"));
}

TEST(Reservation, WaitsForNobodyWhomItWouldPreempt) {
  Question question(2, 4);
  question.before = {question.run(job("a", gpus(3)), "n0"), question.run(job("b", gpus(2)), "n1", 5h)};
  question.preemptable = {question.run(job("low", gpus(1), -1), "n0"),
                          question.run(job("lower", gpus(2), -2), "n1")};
  EXPECT_THAT(ids(question.ask(job("w", gpus(4)).gang)->gone), ElementsAre("a", "low"));
}

TEST(Reservation, IsNoneWhenNoEndHelps) {
  Question question(1, 4);
  question.before = {question.run(job("a", gpus(4)), "n0")};
  EXPECT_FALSE(question.ask(job("w", gpus(5)).gang));
}

TEST(Draining, CountsOnTheYoungToEndSooner) {
  Question question(2, 2);
  const Runners running = {question.run(job("old", gpus(2)), "n0", 20h),
                           question.run(job("young", gpus(2)), "n1", 1h)};
  EXPECT_EQ(
      cheapest_to_wait_for(question.work.cluster, job("w", gpus(2)).gang, running, question.work.now)[0],
      running[1]);
}

TEST(Draining, KeepsLittleIdleRatherThanMuch) {
  Question question(2, 8);
  const Runners running = {question.run(job("one", gpus(1)), "n0", 20h),
                           question.run(job("seven", gpus(7)), "n1", 25h)};
  EXPECT_EQ(
      cheapest_to_wait_for(question.work.cluster, job("w", gpus(8)).gang, running, question.work.now)[0],
      running[1]);
}

/// Two nodes of 4 GPUs full of jobs that are so old, but one has ended on n1.
Runners all_but_one(Question& question, std::chrono::milliseconds age) {
  Runners running;
  for (int i = 0; i < 7; ++i)
    running.push_back(question.run(job("r" + std::to_string(i), gpus(1)), "n" + std::to_string(i / 4), age));
  return running;
}

TEST(Draining, CarriesThroughWhatIsSoonDone) {
  Question question(2, 4);
  const auto running = all_but_one(question, 1min);
  const auto first =
      cheapest_to_wait_for(question.work.cluster, job("w", gpus(4)).gang, running, question.work.now)[0];
  EXPECT_EQ(first->decisions[0].node, "n1");
}

TEST(Draining, KeepsNothingIdleForHoursWhereItNeedNot) {
  Question question(2, 4);
  const auto running = all_but_one(question, 5h);
  const auto first =
      cheapest_to_wait_for(question.work.cluster, job("w", gpus(4)).gang, running, question.work.now)[0];
  EXPECT_EQ(first->decisions[0].node, "n0");
}

TEST(Draining, ATimeLimitBoundsTheRest) {
  Question question(2, 2);
  const Runners running = {question.run(within(201h, job("old", gpus(2))), "n0", 200h),
                           question.run(job("young", gpus(2)), "n1", 10h)};
  EXPECT_EQ(
      cheapest_to_wait_for(question.work.cluster, job("w", gpus(2)).gang, running, question.work.now)[0],
      running[0]);
}

}  // namespace
}  // namespace drover::placement::schedule

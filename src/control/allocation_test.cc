// What tasks had is told once, when they have it no more.

#include "control/allocation.h"

#include <gtest/gtest.h>

#include "control/testing/machine.h"

namespace drover::control {
namespace {

using std::chrono::minutes;
using testing::kNow;
using testing::Machine;

/// A machine that keeps what ended.
struct Accounted : Machine {
  using Machine::Machine;
  std::vector<Allocation> ended;

  Status on(const Event& event, Moment now = kNow) {
    auto outcome = decide(state, event, now);
    if (!outcome) return Failure(outcome.error());
    apply(state, *outcome);
    for (auto& one : outcome->allocations) ended.push_back(std::move(one));
    return {};
  }
  void run(workload::Task task) {
    const auto id = task.id;
    ASSERT_TRUE(on(event::Submitted{{std::move(task)}}));
    ASSERT_TRUE(on(event::Started{id, kNow}));
  }
};

event::Ended ended(const std::string& id, int status, TimePoint at, bool stopped = false,
                   std::optional<workload::Use> use = {}) {
  auto ending = testing::exited(status, stopped);
  ending.finished_at = at;
  return {id, ending, std::nullopt, std::move(use)};
}

/// Of all attempts so far.
workload::Use used(double gpu_seconds) {
  workload::Use use;
  use.gpu_seconds_used = gpu_seconds;
  return use;
}

TEST(Allocation, EndsWithItsTask) {
  Accounted machine(2);
  machine.run(testing::task("a", 2));
  EXPECT_TRUE(machine.ended.empty());
  const auto later = kNow + minutes(10);
  ASSERT_TRUE(machine.on(ended("a", 3, later - minutes(1)), later));
  ASSERT_EQ(machine.ended.size(), 1u);
  const auto& one = machine.ended.front();
  EXPECT_EQ(one.from, kNow);
  EXPECT_EQ(one.until, later - minutes(1)) << "that is when it ended, though it was told later";
  EXPECT_EQ(one.end, AllocationEnd::kFailed);
  EXPECT_EQ(one.cause, Cause::kExit);
  EXPECT_EQ(one.record.gpus.size(), 2u);
  ASSERT_TRUE(machine.on(ended("a", 3, later), later));
  machine.restart();
  ASSERT_TRUE(machine.on(event::NeverStarted{"a"}, later));
  EXPECT_EQ(machine.ended.size(), 1u) << "what is told twice counts once";
}

TEST(Allocation, ClockThatIsSetInBetweenDoesNotMakeItLonger) {
  Accounted machine(1);
  machine.run(testing::task("a", 1));
  const Moment later(kNow + minutes(600), kNow + minutes(10));
  ASSERT_TRUE(machine.on(ended("a", 0, later.wall), later));
  EXPECT_EQ(machine.ended.at(0).until - machine.ended.at(0).from, minutes(10));
}

TEST(Allocation, OfEachAttempt) {
  Accounted machine(1);
  auto task = testing::task("a", 1);
  task.batch.retries = 1;
  machine.run(task);
  ASSERT_TRUE(machine.on(ended("a", 1, kNow + minutes(1), false, used(30)), kNow + minutes(1)));
  ASSERT_EQ(machine.ended.size(), 1u);
  EXPECT_EQ(machine.ended[0].end, AllocationEnd::kFailed);
  EXPECT_EQ(machine.ended[0].cause, Cause::kExit);
  EXPECT_EQ(machine.ended[0].gpu_seconds_used, 30);
  EXPECT_EQ(attempt_of(machine.ended[0].record), 0);
  EXPECT_FALSE(machine.record("a").steady_held_since) << "it waits";
  ASSERT_TRUE(machine.on(event::Tick{}, kNow + minutes(60)));
  ASSERT_EQ(machine.at("a"), TaskState::kStarting);
  ASSERT_TRUE(machine.on(event::Started{"a", kNow + minutes(61)}, kNow + minutes(61)));
  ASSERT_TRUE(machine.on(ended("a", 0, kNow + minutes(70), false, used(130)), kNow + minutes(70)));
  ASSERT_EQ(machine.ended.size(), 2u);
  EXPECT_EQ(machine.ended[1].gpu_seconds_used, 100);
  EXPECT_EQ(machine.ended[1].end, AllocationEnd::kFinished);
  EXPECT_EQ(machine.ended[1].until - machine.ended[1].from, minutes(10)) << "from when it got its GPU";
  EXPECT_EQ(attempt_of(machine.ended[1].record), 1);
}

TEST(Allocation, PreemptedOneEndsAsThat) {
  Accounted machine(1);
  machine.run(testing::task("a", 1));
  ASSERT_TRUE(machine.on(event::Submitted{{testing::urgent(testing::task("b", 1), 5)}}, kNow + minutes(1)));
  ASSERT_EQ(machine.at("a"), TaskState::kStopping);
  EXPECT_TRUE(machine.ended.empty()) << "it has its GPU until it is gone";
  ASSERT_TRUE(machine.on(ended("a", 143, kNow + minutes(2), true), kNow + minutes(2)));
  ASSERT_EQ(machine.ended.size(), 1u);
  EXPECT_EQ(machine.ended[0].end, AllocationEnd::kPreempted);
  EXPECT_EQ(machine.ended[0].until - machine.ended[0].from, minutes(2));
}

TEST(Allocation, NoneOfWhatNeverHadAnything) {
  Accounted machine(1);
  machine.run(testing::task("a", 1));
  ASSERT_TRUE(machine.on(event::Submitted{{testing::task("b", 1)}}));
  ASSERT_TRUE(machine.on(event::StopRequested{"b"}));
  EXPECT_EQ(machine.at("b"), TaskState::kKilled);
  EXPECT_TRUE(machine.ended.empty());
}

TEST(Allocation, OneThatCouldNotBeStartedHadItsGpuTillThen) {
  Accounted machine(1);
  ASSERT_TRUE(machine.on(event::Submitted{{testing::task("a", 1)}}));
  ASSERT_TRUE(machine.on(event::LaunchFailed{"a", Error{ErrorKind::kInternal, "no", "", ""}}));
  ASSERT_EQ(machine.ended.size(), 1u);
  EXPECT_EQ(machine.ended[0].end, AllocationEnd::kFailed);
  EXPECT_EQ(machine.ended[0].cause, Cause::kNotStarted);
}

}  // namespace
}  // namespace drover::control

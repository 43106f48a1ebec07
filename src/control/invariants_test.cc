#include "control/invariants.h"

#include <gmock/gmock.h>

#include "control/testing/machine.h"

namespace drover::control {
namespace {

using testing::exited;
using ::testing::HasSubstr;
using testing::Machine;
using testing::node_with;
using testing::task;
using testing::task_of;

/// As no decision should: the task starts with what is said.
Outcome start(workload::Task task, std::vector<placement::Grant> gpus) {
  Outcome outcome;
  TaskRecord record;
  record.task = std::move(task);
  record.state = TaskState::kStarting;
  record.gpus = std::move(gpus);
  outcome.changed.push_back(std::move(record));
  return outcome;
}

std::string broken(const State& state, const Outcome& outcome) {
  const auto found = broken_invariant(state, outcome);
  return found ? found->message : "";
}

TEST(Invariants, AGpuIsGivenOnce) {
  Machine machine(2);
  ASSERT_TRUE(machine.submit(task("a", 1)));
  const auto taken = uuids_of(machine.record("a")).front();
  const std::string other = taken == "GPU-0" ? "GPU-1" : "GPU-0";
  EXPECT_EQ(broken(machine.state, start(task("b", 1), {{taken}})),
            "Drover was about to start work wrongly, and did not: task 'b' would get GPU " + taken +
                ", of which 2000 thousandths would be given");
  EXPECT_EQ(broken(machine.state, start(task("b", 1), {{other}})), "");
  EXPECT_THAT(broken(machine.state, start(task("b", 1), {{other, 600}, {other, 600}})), HasSubstr("1200"));
  EXPECT_THAT(broken(machine.state, start(task("b", 1), {{"GPU-7"}})), HasSubstr("which is not there"));
}

TEST(Invariants, WhoEndsByTheSameEventHasNothingAnyMore) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(task("a", 1)));
  auto outcome = start(task("b", 1), {{"GPU-0"}});
  auto ended = machine.record("a");
  ended.state = TaskState::kFinished;
  outcome.changed.push_back(ended);
  EXPECT_EQ(broken(machine.state, outcome), "");
}

TEST(Invariants, AGroupSharesItsGpus) {
  Machine machine(1);
  auto member = task("a", 1);
  member.resources.group = "team";
  ASSERT_TRUE(machine.submit(member));
  member.id = "b";
  EXPECT_EQ(broken(machine.state, start(member, {{"GPU-0"}})), "");
  member.owner = 1000;  // a group of that name of somebody else is another one
  EXPECT_THAT(broken(machine.state, start(member, {{"GPU-0"}})), HasSubstr("2000"));
}

TEST(Invariants, QuotasAndLimitsOfQueuesAreNotPassed) {
  Machine machine(4);
  placement::Rules rules;
  const placement::Subject alice{placement::SubjectKind::kUser, "alice"};
  rules.quotas[alice] = {alice, {1000, {}, {}}, {}};
  rules.queues["default"] = {"default", {2000, {}, {}}, {}, 1, {}};
  ASSERT_TRUE(machine.set(rules));
  ASSERT_TRUE(machine.submit(task_of("alice", 1000, "a", 1)));
  EXPECT_THAT(broken(machine.state, start(task_of("alice", 1000, "b", 1), {{"GPU-2"}})),
              HasSubstr("the quota of 'alice' would be passed"));
  EXPECT_EQ(broken(machine.state, start(task_of("bob", 1001, "b", 1), {{"GPU-2"}})), "");
  EXPECT_THAT(broken(machine.state, start(task_of("bob", 1001, "b", 2), {{"GPU-2"}, {"GPU-3"}})),
              HasSubstr("the limit of the queue 'default' would be passed"));
  // Work that runs goes on when the limit is lowered, and what others start has nothing to do with it.
  rules.quotas[alice].limit.gpu_milli = 0;
  ASSERT_TRUE(machine.set(rules));
  EXPECT_EQ(broken(machine.state, start(task_of("bob", 1001, "b", 1), {{"GPU-2"}})), "");
}

TEST(Invariants, WhoRunsAndIsGivenMoreIsLookedAtToo) {
  Machine machine(1);
  auto half = task_of("alice", 1000, "a", 1);
  half.resources.share.milli = 500;
  half.resources.milli_cpus = 1000;
  ASSERT_TRUE(machine.submit(half));
  half.id = "b";
  ASSERT_TRUE(machine.submit(half));
  const auto with = [&](int milli) {
    Outcome outcome;
    outcome.changed = {machine.record("a")};
    outcome.changed[0].gpus[0].milli = outcome.changed[0].task.resources.share.milli = milli;
    return outcome;
  };
  EXPECT_THAT(broken(machine.state, with(501)), HasSubstr("1001 thousandths"));
  EXPECT_EQ(broken(machine.state, with(400)), "");
  ASSERT_TRUE(machine.on(event::StopRequested{"b"}));
  ASSERT_TRUE(machine.on(event::Ended{"b", exited(0, true)}));
  placement::Rules rules;
  const placement::Subject alice{placement::SubjectKind::kUser, "alice"};
  rules.quotas[alice] = {alice, {700, 0, 0}, {}};
  ASSERT_TRUE(machine.set(rules));
  EXPECT_EQ(broken(machine.state, with(700)), "") << "it is given no more of anything else";
  EXPECT_THAT(broken(machine.state, with(701)), HasSubstr("the quota of 'alice' would be passed"));
}

TEST(Invariants, APlanThatBreaksThemIsNotCarriedOutAndTheEventCounts) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(task("a", 1)));
  machine.state.cluster.release("a");  // as if placement had lost it
  const auto outcome = decide(machine.state, event::Submitted{{task("b", 1)}}, testing::kNow);
  ASSERT_TRUE(outcome);
  ASSERT_TRUE(outcome->broken);
  EXPECT_THAT(outcome->broken->message, HasSubstr("task 'b' would get GPU GPU-0"));
  apply(machine.state, *outcome);
  EXPECT_EQ(machine.at("b"), TaskState::kQueued);
  ASSERT_TRUE(machine.on(event::Ended{"a", exited(0)}));
  EXPECT_EQ(machine.at("b"), TaskState::kStarting);
}

}  // namespace
}  // namespace drover::control

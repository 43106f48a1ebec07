// Arrays, dependencies, dates, and what is tried again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/dependencies.h"
#include "control/testing/machine.h"

namespace drover::control {
namespace {

using namespace testing;  // NOLINT: the machine
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using workload::EndedHow;
using workload::Requeue;

workload::Task after(workload::Task task, const std::string& job, EndedHow how = EndedHow::kOk) {
  task.batch.after.push_back({job, how});
  return task;
}

workload::Task retried(workload::Task task, int retries) {
  task.batch.retries = retries;
  return task;
}

std::vector<workload::Task> array(const std::string& id, int size, int gpus, int at_once = 0) {
  std::vector<workload::Task> tasks;
  for (int i = 0; i < size; ++i) {
    tasks.push_back(task(member_id(id, i), gpus));
    tasks.back().batch.array = workload::ArrayMembership{id, i, size, at_once};
  }
  return tasks;
}

std::optional<std::chrono::milliseconds> timeout_of(const Machine& machine, const std::string& id) {
  return machine.record(id).task.timeout;
}

TEST(TimesOfQueues, WhoAsksForNoneHasThoseOfTheQueueAndWhoAsksForMoreIsRefused) {
  Machine machine(4);
  placement::Rules rules;
  rules.queues["lab"] = {.path = "lab", .most = {std::chrono::hours(2), std::chrono::minutes(30)}};
  rules.queues["lab/long"] = {.path = "lab/long", .most = {std::chrono::hours(8), {}}};
  ASSERT_TRUE(machine.on(event::RulesChanged{rules}));
  auto plain = task("plain", 1), shorter = task("shorter", 1), longer = task("longer", 1),
       none = task("none", 0);
  for (auto* each : {&plain, &shorter, &longer, &none}) each->queue = "lab/long";
  shorter.timeout = std::chrono::hours(1);
  shorter.batch.idle_timeout = std::chrono::minutes(5);
  longer.timeout = std::chrono::hours(3);
  for (const auto& each : {plain, shorter, none}) ASSERT_TRUE(machine.submit(each));
  EXPECT_EQ(timeout_of(machine, "plain"), std::chrono::hours(2)) << "what is above is stricter";
  EXPECT_EQ(machine.record("plain").task.batch.idle_timeout, std::chrono::minutes(30));
  EXPECT_EQ(timeout_of(machine, "shorter"), std::chrono::hours(1));
  EXPECT_EQ(machine.record("shorter").task.batch.idle_timeout, std::chrono::minutes(5));
  EXPECT_EQ(machine.record("none").task.batch.idle_timeout, std::nullopt) << "it has no GPUs";
  const auto refused = machine.submit(longer);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "The queue 'lab/long' lets tasks run for 2h at most, and 3h are asked for");
  EXPECT_EQ(refused.error().path, "/timeout");
}

TEST(After, ATaskWaitsUntilAnotherHasSucceeded) {
  Machine machine(4);
  ASSERT_TRUE(machine.submit(task("first", 1)));
  ASSERT_TRUE(machine.submit(after(task("second", 1), "first")));
  EXPECT_EQ(machine.at("second"), TaskState::kQueued) << "although there is room";
  EXPECT_THAT(machine.reasons("second"), ElementsAre("it waits until 'first' (first) has succeeded"));
  machine.restart();
  ASSERT_TRUE(machine.on(event::Tick{}));
  EXPECT_EQ(machine.at("second"), TaskState::kQueued);
  ASSERT_TRUE(machine.on(event::Ended{"first", exited(0)}));
  EXPECT_THAT(machine.asked<action::Launch>(), ElementsAre("second"));
  EXPECT_THAT(machine.state.awaited, IsEmpty());
}

TEST(After, WhatWouldWaitInVainIsEndedAndSoIsWhatWaitsForThat) {
  Machine machine(4);
  ASSERT_TRUE(machine.submit(task("a", 1)));
  ASSERT_TRUE(machine.submit(after(task("b", 1), "a")));
  ASSERT_TRUE(machine.submit(after(task("c", 1), "b")));
  ASSERT_TRUE(machine.submit(after(task("repair", 1), "a", EndedHow::kFailed)));
  ASSERT_TRUE(machine.submit(after(task("report", 1), "c", EndedHow::kAny)));
  ASSERT_TRUE(machine.on(event::Ended{"a", exited(3)}));
  EXPECT_EQ(machine.at("b"), TaskState::kKilled);
  EXPECT_EQ(machine.record("b").reason,
            "never started: 'a' (a) has not succeeded, and it was to start after that");
  EXPECT_EQ(machine.at("c"), TaskState::kKilled);
  EXPECT_THAT(machine.asked<action::Launch>(), UnorderedElementsAre("repair", "report"));
}

TEST(After, WhatComesAfterAFailureIsEndedByASuccess) {
  Machine machine(4);
  ASSERT_TRUE(machine.submit(task("a", 1)));
  ASSERT_TRUE(machine.submit(after(task("repair", 1), "a", EndedHow::kFailed)));
  ASSERT_TRUE(machine.on(event::Ended{"a", exited(0)}));
  EXPECT_EQ(machine.at("repair"), TaskState::kKilled);
}

TEST(After, WhatHasEndedAlreadyIsJudgedAtOnce) {
  Machine machine(4);
  ASSERT_TRUE(machine.submit(task("good", 1)));
  ASSERT_TRUE(machine.submit(task("bad", 1)));
  ASSERT_TRUE(machine.on(event::Ended{"good", exited(0)}));
  ASSERT_TRUE(machine.on(event::Ended{"bad", exited(1)}));
  ASSERT_TRUE(machine.submit(after(task("next", 1), "good")));
  EXPECT_EQ(machine.at("next"), TaskState::kStarting);
  const auto refused = machine.submit(after(task("never", 1), "bad"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kConflict);
  EXPECT_EQ(refused.error().path, "/after");
  EXPECT_EQ(machine.submit(after(task("never", 1), "nobody")).error().kind, ErrorKind::kNotFound);
}

TEST(After, OfAnArrayAllMustEndAndOneFailureIsEnough) {
  Machine machine(4);
  ASSERT_TRUE(machine.submit(array("a", 3, 1)));
  ASSERT_TRUE(machine.submit(after(task("collect", 0), "a")));
  ASSERT_TRUE(machine.submit(after(task("always", 0), "a", EndedHow::kAny)));
  ASSERT_TRUE(machine.submit(after(task("repair", 0), "a", EndedHow::kFailed)));
  ASSERT_TRUE(machine.on(event::Ended{"a-0", exited(0)}));
  EXPECT_EQ(machine.at("collect"), TaskState::kQueued);
  ASSERT_TRUE(machine.on(event::Ended{"a-1", exited(1)}));
  EXPECT_EQ(machine.at("collect"), TaskState::kKilled);
  EXPECT_EQ(machine.at("repair"), TaskState::kStarting);
  EXPECT_EQ(machine.at("always"), TaskState::kQueued);
  ASSERT_TRUE(machine.on(event::Ended{"a-2", exited(0)}));
  EXPECT_EQ(machine.at("always"), TaskState::kStarting);
}

TEST(After, AGangWaitsAndIsWaitedForAsAWhole) {
  Machine machine(4);
  ASSERT_TRUE(machine.submit(gang("g", 2, 1)));
  auto next = gang("h", 2, 1);
  for (auto& member : next) member = after(member, "g");
  ASSERT_TRUE(machine.submit(next));
  ASSERT_TRUE(machine.on(event::Ended{"g-0", exited(0)}));
  EXPECT_EQ(machine.at("h-0"), TaskState::kQueued);
  ASSERT_TRUE(machine.on(event::Ended{"g-1", exited(0)}));
  EXPECT_THAT(machine.asked<action::Launch>(), UnorderedElementsAre("h-0", "h-1"));
  next = gang("i", 2, 1);
  next[1] = after(next[1], "g");
  EXPECT_EQ(machine.submit(next).error().path, "/members/1/after");
}

TEST(After, AThousandInARowAreEndedInOneEvent) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(task("t0", 1)));
  for (int i = 1; i < 1000; ++i)
    ASSERT_TRUE(machine.submit(after(task("t" + std::to_string(i), 1), "t" + std::to_string(i - 1))));
  ASSERT_TRUE(machine.on(event::Ended{"t0", exited(1)}));
  EXPECT_EQ(machine.at("t999"), TaskState::kKilled);
}

TEST(Begin, ATaskWaitsForItsDate) {
  Machine machine(1);
  auto later = task("later", 1);
  later.batch.begin = kNow + seconds(60);
  ASSERT_TRUE(machine.submit(later));
  EXPECT_EQ(machine.at("later"), TaskState::kQueued);
  EXPECT_THAT(machine.reasons("later"), ElementsAre("it begins at " + format_time(kNow + seconds(60))));
  EXPECT_EQ(next_deadline(machine.state, kNow), kNow + seconds(60));
  EXPECT_EQ(next_deadline(machine.state, Moment(kNow, kNow + seconds(5))), kNow + seconds(65))
      << "by the clock that nobody sets";
  machine.restart();
  ASSERT_TRUE(machine.on(event::Tick{}, kNow + seconds(59)));
  EXPECT_EQ(machine.at("later"), TaskState::kQueued);
  ASSERT_TRUE(machine.submit(task("other", 1)));
  EXPECT_EQ(machine.at("other"), TaskState::kStarting) << "nothing is kept for it";
  ASSERT_TRUE(machine.on(event::Ended{"other", exited(0)}));
  ASSERT_TRUE(machine.on(event::Tick{}, kNow + seconds(60)));
  EXPECT_EQ(machine.at("later"), TaskState::kStarting);
  EXPECT_THAT(machine.state.begins, IsEmpty());
}

TEST(Begin, WhoIsStoppedBeforeIsForgottenByTheClock) {
  Machine machine(1);
  auto later = task("later", 1);
  later.batch.begin = kNow + seconds(60);
  ASSERT_TRUE(machine.submit(later));
  ASSERT_TRUE(machine.on(event::StopRequested{"later"}));
  EXPECT_EQ(next_deadline(machine.state, kNow), std::nullopt);
}

TEST(ArrayOfTasks, SoManyRunAtOnceAndTheNextFollows) {
  Machine machine(4);
  ASSERT_TRUE(machine.submit(array("a", 5, 1, 2)));
  EXPECT_THAT(machine.asked<action::Launch>(), UnorderedElementsAre("a-0", "a-1"));
  EXPECT_THAT(machine.reasons("a-2"), ElementsAre("no more than 2 of its array run at once"));
  ASSERT_TRUE(machine.submit(task("other", 1)));
  EXPECT_EQ(machine.at("other"), TaskState::kStarting) << "it does not stand behind the array";
  machine.restart();
  ASSERT_TRUE(machine.on(event::Ended{"a-1", exited(1)}));
  EXPECT_THAT(machine.asked<action::Launch>(), ElementsAre("a-2"));
  EXPECT_EQ(machine.at("a-0"), TaskState::kStarting) << "each goes its own way";
}

TEST(ArrayOfTasks, StartsWithItsLowestNumbers) {
  Machine machine(16);
  ASSERT_TRUE(machine.submit(array("a", 12, 1, 3)));
  EXPECT_THAT(machine.asked<action::Launch>(), UnorderedElementsAre("a-0", "a-1", "a-2"));
}

TEST(ArrayOfTasks, IsStoppedByItsId) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(array("a", 3, 1)));
  ASSERT_TRUE(machine.on(event::StopRequested{"a-2"}));
  EXPECT_EQ(machine.at("a-2"), TaskState::kKilled);
  EXPECT_EQ(machine.at("a-1"), TaskState::kQueued);
  ASSERT_TRUE(machine.on(event::StopRequested{"a"}));
  EXPECT_EQ(machine.at("a-1"), TaskState::kKilled);
  EXPECT_THAT(machine.asked<action::Stop>(), ElementsAre("a-0"));
  EXPECT_EQ(machine.on(event::StopRequested{"a-"}).error().kind, ErrorKind::kNotFound);
}

TEST(ArrayOfTasks, IsForgottenWithItsLastTask) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(array("a", 2, 0)));
  for (const auto* id : {"a-0", "a-1"}) {
    ASSERT_TRUE(machine.on(event::Ended{id, exited(0)}));
    ASSERT_TRUE(machine.on(event::RemoveRequested{id}));
  }
  EXPECT_THAT(machine.state.by_array, IsEmpty());
}

TEST(ArrayOfTasks, ThoseThatAreHeldBackKeepNobodyBehindThem) {
  Machine machine(4);
  ASSERT_TRUE(machine.submit(task("gate", 1)));
  auto held = array("a", static_cast<int>(kPlannedOfUser) + 10, 1);
  for (auto& each : held) each = after(each, "gate");
  ASSERT_TRUE(machine.submit(held));
  ASSERT_TRUE(machine.submit(task("free", 1)));
  EXPECT_EQ(machine.at("free"), TaskState::kStarting);
  EXPECT_THAT(machine.state.positions->order, SizeIs(kPlannedOfUser + 10)) << "they are in the list";
}

TEST(Retries, AFailureIsTriedAgainAfterAWhileAndThenNoMore) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(retried(task("t", 1), 2)));
  ASSERT_TRUE(machine.on(event::Started{"t", kNow}));
  ASSERT_TRUE(machine.on(event::Ended{"t", exited(3)}));
  EXPECT_EQ(machine.at("t"), TaskState::kQueued);
  EXPECT_THAT(machine.asked<action::Clean>(), ElementsAre("t"));
  EXPECT_THAT(machine.reasons("t").front(), HasSubstr("exited with status 3"));
  EXPECT_THAT(machine.reasons("t").front(), HasSubstr("retry 1 of 2"));
  EXPECT_EQ(next_deadline(machine.state, kNow), kNow + seconds(5));
  machine.restart();
  ASSERT_TRUE(machine.on(event::Tick{}, kNow + seconds(5)));
  EXPECT_EQ(machine.at("t"), TaskState::kStarting);
  EXPECT_EQ(attempt_of(machine.record("t")), 1);
  ASSERT_TRUE(machine.on(event::Ended{"t", exited(3), 0}, kNow + seconds(6)));
  EXPECT_EQ(machine.at("t"), TaskState::kStarting) << "that was news of the attempt before";
  ASSERT_TRUE(
      machine.on(event::LaunchFailed{"t", {ErrorKind::kUnavailable, "no image"}, 1}, kNow + seconds(6)));
  EXPECT_EQ(next_deadline(machine.state, kNow + seconds(6)), kNow + seconds(16));
  ASSERT_TRUE(machine.on(event::Tick{}, kNow + seconds(16)));
  ASSERT_TRUE(machine.on(event::Ended{"t", exited(4)}, kNow + seconds(20)));
  EXPECT_EQ(machine.at("t"), TaskState::kFailed);
  EXPECT_EQ(machine.record("t").reason, "exited with status 4");
}

TEST(Retries, ASuccessAStopAndATimeThatIsUpAreNoFailures) {
  Machine machine(3);
  ASSERT_TRUE(machine.submit(retried(task("good", 1), 5)));
  ASSERT_TRUE(machine.submit(retried(task("stopped", 1), 5)));
  auto slow = retried(task("slow", 1), 5);
  slow.timeout = seconds(10);
  ASSERT_TRUE(machine.submit(slow));
  ASSERT_TRUE(machine.on(event::Started{"slow", kNow}));
  ASSERT_TRUE(machine.on(event::Ended{"good", exited(0)}));
  ASSERT_TRUE(machine.on(event::StopRequested{"stopped"}));
  ASSERT_TRUE(machine.on(event::Ended{"stopped", exited(143, true)}));
  ASSERT_TRUE(machine.on(event::Tick{}, kNow + seconds(10)));
  ASSERT_TRUE(machine.on(event::Ended{"slow", exited(143, true)}, kNow + seconds(11)));
  EXPECT_EQ(machine.at("good"), TaskState::kFinished);
  EXPECT_EQ(machine.at("stopped"), TaskState::kKilled);
  EXPECT_EQ(machine.at("slow"), TaskState::kFailed);
}

TEST(Retries, WhoWaitsToBeTriedAgainCanBeStopped) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(retried(task("t", 1), 2)));
  ASSERT_TRUE(machine.on(event::Ended{"t", exited(3)}));
  ASSERT_TRUE(machine.on(event::StopRequested{"t"}));
  EXPECT_EQ(machine.at("t"), TaskState::kKilled);
  EXPECT_THAT(machine.state.retries, IsEmpty());
}

TEST(Retries, AGangIsTriedAgainAsAWhole) {
  Machine machine(3);
  auto members = gang("g", 3, 1);
  for (auto& member : members) member = retried(member, 1);
  ASSERT_TRUE(machine.submit(members));
  for (const auto* id : {"g-0", "g-1", "g-2"}) ASSERT_TRUE(machine.on(event::Started{id, kNow}));
  ASSERT_TRUE(machine.on(event::Ended{"g-1", exited(3)}));
  EXPECT_THAT(machine.asked<action::Stop>(), UnorderedElementsAre("g-0", "g-2"));
  ASSERT_TRUE(machine.on(event::Ended{"g-0", exited(1)})) << "it fell with the other, before it was asked";
  machine.restart();
  ASSERT_TRUE(machine.on(event::Ended{"g-2", exited(0, true)}));
  ASSERT_TRUE(machine.on(event::Tick{}, kNow + seconds(5)));
  EXPECT_THAT(machine.asked<action::Launch>(), UnorderedElementsAre("g-0", "g-1", "g-2"));
  for (const auto* id : {"g-0", "g-1", "g-2"}) EXPECT_EQ(machine.record(id).failures, 1) << id;
  ASSERT_TRUE(machine.on(event::Ended{"g-0", exited(9)}));
  EXPECT_EQ(machine.at("g-0"), TaskState::kFailed) << "that was all";
  ASSERT_TRUE(machine.on(event::Ended{"g-1", exited(143, true)}));
  EXPECT_EQ(machine.at("g-1"), TaskState::kKilled);
}

TEST(Retries, AGangOfWhichSomebodyHasFinishedEnds) {
  Machine machine(2);
  auto members = gang("g", 2, 1);
  for (auto& member : members) member = retried(member, 1);
  ASSERT_TRUE(machine.submit(members));
  ASSERT_TRUE(machine.on(event::Ended{"g-0", exited(0)}));
  ASSERT_TRUE(machine.on(event::Ended{"g-1", exited(1)}));
  EXPECT_EQ(machine.at("g-1"), TaskState::kFailed);
}

TEST(Retries, AStopEndsAGangThatIsAboutToBeTriedAgain) {
  Machine machine(2);
  auto members = gang("g", 2, 1);
  for (auto& member : members) member = retried(member, 1);
  ASSERT_TRUE(machine.submit(members));
  ASSERT_TRUE(machine.on(event::Ended{"g-0", exited(1)}));
  ASSERT_TRUE(machine.on(event::StopRequested{"g"}));
  ASSERT_TRUE(machine.on(event::Ended{"g-1", exited(143, true)}));
  EXPECT_EQ(machine.at("g-0"), TaskState::kKilled);
  EXPECT_EQ(machine.at("g-1"), TaskState::kKilled);
}

TEST(Requeue, WhatWasLostStartsAgainWhenThatIsAskedFor) {
  Machine machine(2);
  auto patient = task("patient", 1);
  patient.batch.requeue = Requeue::kLost;
  ASSERT_TRUE(machine.submit(patient));
  ASSERT_TRUE(machine.submit(task("usual", 1)));
  workload::Ending lost;
  lost.lost = true;
  lost.message = "its shim died";
  for (const auto* id : {"patient", "usual"}) {
    ASSERT_TRUE(machine.on(event::Started{id, kNow}));
    ASSERT_TRUE(machine.on(event::Ended{id, lost}));
  }
  EXPECT_EQ(machine.at("usual"), TaskState::kLost);
  EXPECT_EQ(machine.at("patient"), TaskState::kQueued);
  ASSERT_TRUE(machine.on(event::Tick{}, kNow + seconds(5)));
  EXPECT_EQ(machine.at("patient"), TaskState::kStarting);
  ASSERT_TRUE(machine.on(event::Ended{"patient", exited(1)}));
  EXPECT_EQ(machine.at("patient"), TaskState::kFailed) << "that is another thing";
}

TEST(Requeue, AGangThatDoesNotStartAgainEndsAsAWholeWhenOneCannotBeGivenItsGpu) {
  Machine machine(2);
  auto members = gang("g", 2, 1);
  for (auto& member : members) member.batch.requeue = Requeue::kNever;
  ASSERT_TRUE(machine.submit(members));
  ASSERT_TRUE(machine.on(event::Started{"g-1", kNow}));
  ASSERT_TRUE(machine.on(event::PutBack{"g-0", {ErrorKind::kUnavailable, "a stranger has it"}}));
  ASSERT_TRUE(machine.on(event::Ended{"g-1", exited(143, true)}));
  EXPECT_EQ(machine.at("g-0"), TaskState::kFailed);
  EXPECT_EQ(machine.at("g-1"), TaskState::kKilled);
}

TEST(Requeue, ATaskThatDoesNotStartAgainIsPutBackAllTheSameWhenNothingOfItRan) {
  Machine machine(1);
  auto once = task("once", 1);
  once.batch.requeue = Requeue::kNever;
  ASSERT_TRUE(machine.submit(once));
  ASSERT_TRUE(machine.on(event::PutBack{"once", {ErrorKind::kUnavailable, "a stranger has it"}}));
  EXPECT_FALSE(is_final(machine.at("once")));
}

TEST(Requeue, WhoDoesNotWantToStartAgainEndsWhenItIsPreempted) {
  Machine machine(1);
  auto once = task("once", 1);
  once.batch.requeue = Requeue::kNever;
  ASSERT_TRUE(machine.submit(once));
  ASSERT_TRUE(machine.on(event::Started{"once", kNow}));
  ASSERT_TRUE(machine.submit(urgent(task("high", 1), 10)));
  ASSERT_TRUE(machine.on(event::Ended{"once", exited(143, true)}));
  EXPECT_EQ(machine.at("once"), TaskState::kKilled);
  EXPECT_THAT(machine.record("once").reason, HasSubstr("preempted"));
  EXPECT_EQ(machine.at("high"), TaskState::kStarting);
}

}  // namespace
}  // namespace drover::control

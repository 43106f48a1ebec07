#include "control/schedules.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "control/stored.h"
#include "control/testing/schedules.h"

namespace drover::control {
namespace {

using namespace std::chrono_literals;
using testing::kNow;
using testing::Scheduler;
using Words = std::vector<std::string>;

std::string minutely(TimePoint start, const std::string& count = "") {
  return "R" + count + "/" + format_time(start) + "/PT1M";
}

TEST(Schedules, RunAtTheirTimes) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("j", minutely(kNow + 30s))));
  EXPECT_EQ(next_deadline(scheduler.machine.state), kNow + 30s);
  const Moment set_ahead(kNow + 20s, kNow);
  EXPECT_EQ(next_deadline(scheduler.machine.state, set_ahead), kNow + 10s)
      << "dates follow the clock that is set";
  scheduler.go(29s);
  EXPECT_TRUE(scheduler.tasks("j").empty());
  scheduler.go(1s);
  ASSERT_EQ(scheduler.tasks("j").size(), 1U);
  const auto& task = scheduler.tasks("j")[0]->task;
  EXPECT_EQ(task.origin.kind, workload::OriginKind::kSchedule);
  EXPECT_EQ(task.origin.task_id, "ct:1700000030000:0:j:");
  EXPECT_EQ(task.environment.at("CHRONOS_JOB_RUN_TIME"), "1700000030000");
  EXPECT_EQ(task.environment.at("CHRONOS_JOB_RUN_ATTEMPT"), "0");
  EXPECT_EQ(task.environment.at("mesos_task_id"), "ct:1700000030000:0:j:");
  EXPECT_EQ(scheduler.machine.at(task.id), TaskState::kStarting);
  scheduler.end("j", 0);
  EXPECT_EQ(scheduler.record("j").successes, 1U);
  EXPECT_EQ(scheduler.record("j").last_success, scheduler.now);
  scheduler.go(60s);
  EXPECT_EQ(scheduler.tasks("j").size(), 2U);
}

TEST(Schedules, AFiniteOneStaysWhenItIsOver) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("j", minutely(kNow, "2"))));
  scheduler.go(0s);
  scheduler.end("j", 0);
  scheduler.go(60s);
  scheduler.end("j", 0);
  EXPECT_FALSE(scheduler.record("j").due);
  scheduler.go(10min);
  EXPECT_EQ(scheduler.tasks("j").size(), 2U);
  EXPECT_EQ(scheduler.record("j").successes, 2U);
}

TEST(Schedules, AStartInThePastIsSkippedForwardButForWhatIsInTime) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("old", minutely(kNow - 1000min - 30s, "1005"))));
  scheduler.go(0s);
  ASSERT_EQ(scheduler.tasks("old").size(), 1U);
  EXPECT_EQ(scheduler.record("old").active[0].due, kNow - 30s);
  EXPECT_EQ(scheduler.record("old").next, 1001);  // four are left
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("day", "R/2018-03-05T23:00:00.000Z/PT24H")));
  EXPECT_EQ(format_time(*scheduler.record("day").due), "2023-11-14T23:00:00.000Z");
}

TEST(Schedules, WhatWasDueLongAgoIsLeftOutAndSaid) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("j", minutely(kNow + 1s))));
  scheduler.sleep(10min);
  EXPECT_EQ(scheduler.history("j"), (Words{"skipped 9"}));
  ASSERT_EQ(scheduler.tasks("j").size(), 1U);
  EXPECT_EQ(scheduler.record("j").active[0].due, kNow + 9min + 1s);
  EXPECT_GT(*scheduler.record("j").due, scheduler.now);
}

TEST(Schedules, EpsilonSaysHowLateIsTooLate) {
  Scheduler scheduler;
  auto daily = Scheduler::schedule("j", "R/" + format_time(kNow + 1s) + "/P1D");
  daily.epsilon = 15min;
  ASSERT_TRUE(scheduler.define(daily));
  scheduler.sleep(15min);
  EXPECT_EQ(scheduler.tasks("j").size(), 1U);
  scheduler.end("j", 0);
  scheduler.sleep(24h + 2s);
  EXPECT_EQ(scheduler.tasks("j").size(), 1U);
  EXPECT_EQ(scheduler.history("j"), (Words{"succeeded", "skipped"}));
}

TEST(Schedules, RunsDoNotOverlapUnlessTheyMay) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("one", minutely(kNow))));
  auto many = Scheduler::schedule("many", minutely(kNow));
  many.concurrent = true;
  ASSERT_TRUE(scheduler.define(many));
  scheduler.go(3min);
  EXPECT_EQ(scheduler.tasks("one").size(), 1U);
  EXPECT_EQ(scheduler.history("one"), (Words{"skipped 3"}));
  EXPECT_EQ(scheduler.record("one").history[0].message, "the run before was still going on");
  EXPECT_EQ(scheduler.tasks("many").size(), 4U);
}

TEST(Schedules, FailedRunsAreTriedAgainUntilNoneIsLeft) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("j", "R1/" + format_time(kNow) + "/P1D")));
  scheduler.go(0s);
  scheduler.end("j", 1);
  EXPECT_EQ(scheduler.record("j").errors, 0U);
  scheduler.go(4s);
  EXPECT_EQ(scheduler.running("j"), "");
  scheduler.go(1s);
  scheduler.end("j", 1);
  scheduler.go(10s);
  EXPECT_EQ(scheduler.tasks("j").back()->task.origin.task_id, "ct:1700000000000:2:j:");
  scheduler.end("j", 1);
  scheduler.go(10min);
  EXPECT_EQ(scheduler.tasks("j").size(), 3U);
  EXPECT_EQ(scheduler.history("j"), (Words{"failed", "failed", "failed"}));
  EXPECT_EQ(scheduler.record("j").errors, 1U);
  EXPECT_EQ(scheduler.record("j").errors_since_success, 1U);
}

TEST(Schedules, WhatHasFailedForGoodIsNotRetriedBeforeItSucceeds) {
  Scheduler scheduler;
  auto job = Scheduler::schedule("j", minutely(kNow));
  job.retries = 1;
  ASSERT_TRUE(scheduler.define(job));
  scheduler.go(0s);
  scheduler.end("j", 1);
  scheduler.go(5s);
  scheduler.end("j", 1);
  scheduler.go_to(kNow + 1min);
  scheduler.end("j", 1);
  EXPECT_TRUE(scheduler.record("j").retries.empty());  // Chronos: lastError is newer than lastSuccess
  scheduler.go_to(kNow + 2min);
  scheduler.end("j", 0);
  scheduler.go_to(kNow + 3min);
  scheduler.end("j", 1);
  EXPECT_EQ(scheduler.record("j").retries.size(), 1U);
}

TEST(Schedules, ATimeoutIsAFailure) {
  Scheduler scheduler;
  auto job = Scheduler::schedule("j", minutely(kNow));
  job.retries = 0;
  job.task.timeout = 10s;
  ASSERT_TRUE(scheduler.define(job));
  scheduler.go(0s);
  const auto id = scheduler.running("j");
  ASSERT_TRUE(scheduler.on(event::Started{id, scheduler.now}));
  scheduler.go(10s);
  EXPECT_EQ(scheduler.machine.at(id), TaskState::kStopping);
  ASSERT_TRUE(scheduler.on(event::Ended{id, testing::exited(143, true)}));
  EXPECT_EQ(scheduler.history("j"), (Words{"failed"}));
  EXPECT_EQ(scheduler.record("j").errors, 1U);
}

TEST(Schedules, ADisabledOneLetsItsTimesPass) {
  Scheduler scheduler;
  auto job = Scheduler::schedule("j", minutely(kNow + 1s, "3"));
  job.disabled = true;
  ASSERT_TRUE(scheduler.define(job));
  scheduler.go(90s);
  EXPECT_TRUE(scheduler.tasks("j").empty());
  EXPECT_TRUE(scheduler.history("j").empty());
  EXPECT_EQ(scheduler.on(event::ScheduleRunRequested{"j", ""}).error().message, "Job 'j' is disabled");
  job.disabled = false;
  ASSERT_TRUE(scheduler.define(job));
  scheduler.go(10min);
  EXPECT_EQ(scheduler.tasks("j").size(), 1U);
}

TEST(Schedules, ChildrenRunWhenAllParentsHaveSucceeded) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("a", minutely(kNow))));
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("b", minutely(kNow))));
  ASSERT_TRUE(scheduler.define(Scheduler::child("c", {"a", "b"})));
  scheduler.go(0s);
  scheduler.end("a", 0);
  EXPECT_TRUE(scheduler.tasks("c").empty());
  scheduler.go_to(kNow + 1min);
  scheduler.end("a", 0);  // twice is not both
  EXPECT_TRUE(scheduler.tasks("c").empty());
  scheduler.end("b", 0);
  EXPECT_EQ(scheduler.tasks("c").size(), 1U);
  scheduler.end("c", 0);
  scheduler.go_to(kNow + 2min);
  scheduler.end("b", 0);
  EXPECT_EQ(scheduler.tasks("c").size(), 1U);
}

TEST(Schedules, ChildrenDoNotRunAfterAFailureUnlessItIsSoft) {
  Scheduler scheduler;
  auto parent = Scheduler::schedule("a", minutely(kNow));
  parent.retries = 0;
  ASSERT_TRUE(scheduler.define(parent));
  ASSERT_TRUE(scheduler.define(Scheduler::child("c", {"a"})));
  scheduler.go(0s);
  scheduler.end("a", 1);
  EXPECT_TRUE(scheduler.tasks("c").empty());
  parent.soft_error = true;
  ASSERT_TRUE(scheduler.define(parent));
  scheduler.go_to(kNow + 1min);
  scheduler.end("a", 1);
  EXPECT_EQ(scheduler.tasks("c").size(), 1U);
}

TEST(Schedules, ParentsExistAndNobodyWaitsForItself) {
  Scheduler scheduler;
  EXPECT_EQ(scheduler.define(Scheduler::child("c", {"a"})).error().message, "Job 'a' not found");
  EXPECT_FALSE(scheduler.define(Scheduler::child("c", {"c"})));
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("a", minutely(kNow))));
  ASSERT_TRUE(scheduler.define(Scheduler::child("b", {"a"})));
  ASSERT_TRUE(scheduler.define(Scheduler::child("c", {"b"})));
  EXPECT_EQ(scheduler.define(Scheduler::child("a", {"c"})).error().message, "Job 'a' would wait for itself");
  EXPECT_FALSE(scheduler.record("a").schedule.repetition.empty());
}

TEST(Schedules, ChildrenOfOneThatIsRemovedGoToItsParentsOrTakeItsTimes) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("a", minutely(kNow + 1min))));
  ASSERT_TRUE(scheduler.define(Scheduler::child("b", {"a"})));
  ASSERT_TRUE(scheduler.define(Scheduler::child("c", {"b"})));
  ASSERT_TRUE(scheduler.on(event::ScheduleRemoved{"b"}));
  EXPECT_EQ(scheduler.record("c").schedule.parents, std::set<std::string>{"a"});
  ASSERT_TRUE(scheduler.on(event::ScheduleRemoved{"a"}));
  EXPECT_EQ(scheduler.record("c").schedule.repetition, minutely(kNow + 1min));
  EXPECT_EQ(scheduler.record("c").due, kNow + 1min);
  EXPECT_EQ(scheduler.on(event::ScheduleRemoved{"a"}).error().message, "Job 'a' not found");
}

TEST(Schedules, RunNowTakesArguments) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("j", minutely(kNow + 1h))));
  ASSERT_TRUE(scheduler.on(event::ScheduleRunRequested{"j", "-v now"}));
  ASSERT_EQ(scheduler.tasks("j").size(), 1U);
  EXPECT_EQ(scheduler.tasks("j")[0]->task.command->back(), "work -v now");
  EXPECT_EQ(scheduler.tasks("j")[0]->task.origin.task_id, "ct:1700000000000:0:j:-v now");
  ASSERT_TRUE(scheduler.on(event::ScheduleRunRequested{"j", ""}));
  EXPECT_EQ(scheduler.history("j"), Words{"skipped"});
  auto words = Scheduler::schedule("w", minutely(kNow + 1h));
  words.shell = false;
  words.task.command = {"/bin/echo"};
  ASSERT_TRUE(scheduler.define(words));
  ASSERT_TRUE(scheduler.on(event::ScheduleRunRequested{"w", " a  b "}));
  EXPECT_EQ(scheduler.tasks("w")[0]->task.command, (Words{"/bin/echo", "a", "b"}));
}

TEST(Schedules, KillStopsRunsAndRetries) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("j", minutely(kNow))));
  scheduler.go(0s);
  const auto id = scheduler.running("j");
  ASSERT_TRUE(scheduler.on(event::Started{id, scheduler.now}));
  ASSERT_TRUE(scheduler.on(event::ScheduleKilled{"j"}));
  EXPECT_EQ(scheduler.machine.at(id), TaskState::kStopping);
  ASSERT_TRUE(scheduler.on(event::Ended{id, testing::exited(137, true)}));
  EXPECT_EQ(scheduler.history("j"), Words{"killed"});
  EXPECT_EQ(scheduler.record("j").errors, 0U);
  EXPECT_TRUE(scheduler.record("j").retries.empty());
  scheduler.go_to(kNow + 1min);
  scheduler.end("j", 1);
  ASSERT_FALSE(scheduler.record("j").retries.empty());
  ASSERT_TRUE(scheduler.on(event::ScheduleKilled{"j"}));
  EXPECT_TRUE(scheduler.record("j").retries.empty());
}

TEST(Schedules, MarkingOneAsSuccessfulReleasesItsChildren) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("a", minutely(kNow + 1h))));
  ASSERT_TRUE(scheduler.define(Scheduler::child("c", {"a"})));
  ASSERT_TRUE(scheduler.on(event::ScheduleMarked{"a"}));
  EXPECT_EQ(scheduler.record("a").successes, 1U);
  EXPECT_EQ(scheduler.tasks("c").size(), 1U);
}

TEST(Schedules, SendingADefinitionAgainDoesNotRunItAgain) {
  Scheduler scheduler;
  const auto job = Scheduler::schedule("j", "R/" + format_time(kNow) + "/P1D");
  ASSERT_TRUE(scheduler.define(job));
  scheduler.go(0s);
  scheduler.end("j", 0);
  scheduler.go(10s);
  ASSERT_TRUE(scheduler.define(job));
  scheduler.go(10s);
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("j", "R/" + format_time(kNow) + "/PT24H")));
  scheduler.go(10s);
  EXPECT_EQ(scheduler.tasks("j").size(), 1U);
  EXPECT_EQ(scheduler.record("j").successes, 1U);  // and what was counted stays
}

TEST(Schedules, AClockThatGoesBackRunsNothingTwice) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("j", minutely(kNow))));
  scheduler.go(0s);
  scheduler.end("j", 0);
  scheduler.now -= 10min;
  scheduler.go(10min + 59s);
  EXPECT_EQ(scheduler.tasks("j").size(), 1U);
}

TEST(Schedules, KeepTheTasksOfTheLastRunsOnly) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("j", minutely(kNow))));
  for (int i = 0; i < 30; ++i) {
    scheduler.go_to(kNow + i * 1min);
    scheduler.end("j", 0);
  }
  EXPECT_EQ(scheduler.tasks("j").size(), kKeptRuns);
  EXPECT_EQ(scheduler.history("j").size(), kMostHistory);
  EXPECT_EQ(scheduler.record("j").successes, 30U);
}

TEST(Schedules, WhatCannotRunIsRefusedWhenItIsDefinedAndSaidWhenItIsDue) {
  Scheduler scheduler(1);
  auto job = Scheduler::schedule("j", minutely(kNow));
  job.task.resources.gpus = {{2, {}}};
  EXPECT_FALSE(scheduler.define(job));
  EXPECT_TRUE(scheduler.machine.state.schedules.empty());
  job.task.resources.gpus = {{1, {}}};
  ASSERT_TRUE(scheduler.define(job));
  ASSERT_TRUE(scheduler.on(event::NodeChanged{testing::node_with(0)}));
  scheduler.go(0s);
  EXPECT_EQ(scheduler.history("j"), Words{"failed"});
  EXPECT_NE(scheduler.record("j").history[0].message, "");
  EXPECT_EQ(scheduler.record("j").errors, 1U);
}

TEST(Schedules, ProgressIsAddedUpForKnownRuns) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("j", minutely(kNow))));
  scheduler.go(0s);
  const auto run = scheduler.record("j").active[0].origin_id;
  ASSERT_TRUE(scheduler.on(event::ScheduleProgressed{"j", run, 5}));
  ASSERT_TRUE(scheduler.on(event::ScheduleProgressed{"j", run, 7}));
  EXPECT_EQ(scheduler.record("j").elements.at(run), 12);
  EXPECT_FALSE(scheduler.on(event::ScheduleProgressed{"j", "ct:0:0:j:", 7}));
}

// kNow is 22:13:20 UTC.
TEST(Schedules, CronRunsAtItsTimesFromWhenItIsGiven) {
  Scheduler scheduler;
  auto job = Scheduler::schedule("j", "*/2 * * * *");
  job.epsilon = 24h;  // says how late is too late, and not that the times before were meant
  ASSERT_TRUE(scheduler.define(job));
  EXPECT_EQ(next_deadline(scheduler.machine.state), kNow + 40s);
  scheduler.go(39s);
  EXPECT_TRUE(scheduler.tasks("j").empty());
  scheduler.go(1s);
  ASSERT_EQ(scheduler.tasks("j").size(), 1U);
  EXPECT_EQ(scheduler.tasks("j")[0]->task.origin.task_id, "ct:1700000040000:0:j:");
  scheduler.end("j", 0);
  ASSERT_TRUE(scheduler.define(job));  // the same once more
  scheduler.go(119s);
  EXPECT_EQ(scheduler.tasks("j").size(), 1U);
  scheduler.go(1s);
  EXPECT_EQ(scheduler.tasks("j").size(), 2U);
  EXPECT_TRUE(scheduler.history("j") == Words{"succeeded"});
}

TEST(Schedules, CronGoesByItsTimeZone) {
  Scheduler scheduler;
  auto job = Scheduler::schedule("j", "30 2 * * *");
  job.time_zone = "Europe/Berlin";
  ASSERT_TRUE(scheduler.define(job));
  EXPECT_EQ(format_time(*scheduler.record("j").due), "2023-11-15T01:30:00.000Z");
  job.time_zone = "America/New_York";
  ASSERT_TRUE(scheduler.define(job));
  EXPECT_EQ(format_time(*scheduler.record("j").due), "2023-11-15T07:30:00.000Z");
}

TEST(Schedules, OfCronWhatWasDueLongAgoIsLeftOutAndSaid) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("j", "* * * * *")));
  scheduler.sleep(10min);
  EXPECT_EQ(scheduler.history("j"), (Words{"skipped 9"}));
  EXPECT_EQ(scheduler.record("j").history[0].run.due, kNow + 8min + 40s);
  ASSERT_EQ(scheduler.tasks("j").size(), 1U);
  EXPECT_EQ(scheduler.record("j").active[0].due, kNow + 9min + 40s);
  EXPECT_EQ(scheduler.record("j").due, kNow + 10min + 40s);
  scheduler.end("j", 0);
  scheduler.now -= 5min;  // a clock that goes back runs nothing twice
  scheduler.go(5min + 39s);
  EXPECT_EQ(scheduler.tasks("j").size(), 1U);
  scheduler.go(1s);
  EXPECT_EQ(scheduler.tasks("j").size(), 2U);
}

TEST(Schedules, AfterAYearCronStartsTheLatestAndCountsTheRest) {
  Scheduler scheduler;
  auto many = Scheduler::schedule("many", "* * * * *");
  many.concurrent = true;
  many.epsilon = 24h * 3650;
  auto yearly = Scheduler::schedule("yearly", "@yearly");
  yearly.epsilon = 24h * 3650;
  ASSERT_TRUE(scheduler.define(many));
  ASSERT_TRUE(scheduler.define(yearly));
  scheduler.sleep(24h * 366);
  EXPECT_EQ(scheduler.history("many"), (Words{"skipped " + std::to_string(366 * 24 * 60 - 60)}));
  ASSERT_EQ(scheduler.record("many").active.size(), 60U);
  EXPECT_EQ(scheduler.record("many").active.back().due, kNow + 24h * 366 - 20s);
  ASSERT_EQ(scheduler.record("yearly").active.size(), 1U);
  EXPECT_EQ(format_time(scheduler.record("yearly").active[0].due), "2024-01-01T00:00:00.000Z");
}

TEST(Schedules, ChildrenTakeOverTheTimesOfCron) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("a", "@hourly")));
  ASSERT_TRUE(scheduler.define(Scheduler::child("b", {"a"})));
  scheduler.go(1h);
  ASSERT_TRUE(scheduler.on(event::ScheduleRemoved{"a"}));
  EXPECT_EQ(scheduler.record("b").schedule.repetition, "@hourly");
  EXPECT_EQ(format_time(*scheduler.record("b").due), "2023-11-15T00:00:00.000Z");
}

TEST(Schedules, AnIntervalThatBecomesCronAndTheOtherWayRunsNothingTwice) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("j", minutely(kNow + 40s, "5"))));
  scheduler.go(41s);
  scheduler.end("j", 0);
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("j", "* * * * *")));
  EXPECT_EQ(scheduler.record("j").due, kNow + 100s);
  scheduler.go(60s);
  scheduler.end("j", 0);
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("j", minutely(kNow + 40s, "5"))));
  EXPECT_EQ(scheduler.record("j").next, 2);
  EXPECT_EQ(scheduler.record("j").due, kNow + 160s);
  EXPECT_EQ(scheduler.tasks("j").size(), 2U);
}

TEST(Schedules, ARecordOfAnOlderDaemonGoesOnAtItsIndex) {
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.define(Scheduler::schedule("j", minutely(kNow - 10min, "20"))));
  scheduler.go(0s);
  scheduler.end("j", 0);
  const auto stored = nlohmann::json(scheduler.record("j"));  // as older daemons have it
  EXPECT_EQ(stored.at("next"), 11);
  EXPECT_EQ(stored.at("due"), format_time(kNow + 1min));
  EXPECT_EQ(stored.at("schedule").at("repetition"), minutely(kNow - 10min, "20"));
  scheduler.sleep(5min + 30s);
  EXPECT_EQ(scheduler.record("j").active.at(0).due, kNow + 5min);
  EXPECT_EQ(scheduler.record("j").next, 16);
  EXPECT_EQ(scheduler.record("j").history.back().count, 4);
}

TEST(Schedules, AreReadBackAsStored) {
  Scheduler scheduler;
  auto job = Scheduler::schedule("j", minutely(kNow));
  job.time_zone = "Europe/Berlin";
  job.repetition = "R/2023-11-14T23:13:20.000+01:00/PT1M";
  ASSERT_TRUE(scheduler.define(job));
  scheduler.go(0s);
  scheduler.end("j", 1);
  scheduler.go(61s);
  const auto& record = scheduler.record("j");
  ASSERT_FALSE(record.active.empty());
  ASSERT_FALSE(record.history.empty());
  const auto read = from_stored<ScheduleRecord>(nlohmann::json::parse(nlohmann::json(record).dump()), "It");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(*read, record);
}

}  // namespace
}  // namespace drover::control

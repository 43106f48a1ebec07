#include "control/frameworks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/journal.h"
#include "control/testing/journal.h"
#include "control/testing/machine.h"

namespace drover::control {
namespace {

using ::testing::ElementsAre;
using testing::exited;
using ::testing::IsEmpty;
using testing::kNow;
using testing::Machine;
using ::testing::SizeIs;

using std::chrono::seconds;

FrameworkRecord aurora(std::chrono::milliseconds failover_timeout = seconds(60)) {
  FrameworkRecord record;
  record.name = "aurora";
  record.user = "root";
  record.failover_timeout = failover_timeout;
  return record;
}

FrameworkLaunch launch(const std::string& task_id, int gpus = 0) {
  auto task = testing::task("", gpus);
  task.origin = {workload::OriginKind::kFramework, "F-0000", task_id, ""};
  return {task_id, task};
}

class Frameworks : public ::testing::Test {
 protected:
  Frameworks() { EXPECT_TRUE(machine_.on(event::FrameworkSubscribed{"F-0000", aurora()})); }

  const FrameworkTask* row(const std::string& task_id) const {
    const auto found = machine_.state.framework_tasks.find("F-0000/" + task_id);
    return found == machine_.state.framework_tasks.end() ? nullptr : &found->second;
  }
  std::vector<std::string> updates(const std::string& task_id) const {
    std::vector<std::string> states;
    for (const auto& update : row(task_id)->updates) states.push_back(update.state);
    return states;
  }
  std::string start(const std::string& task_id, int gpus = 0) {
    EXPECT_TRUE(machine_.on(event::FrameworkLaunched{{launch(task_id, gpus)}}));
    const auto id = row(task_id)->id;
    EXPECT_TRUE(machine_.on(event::Started{id, kNow}));
    return id;
  }
  void acknowledge(const std::string& task_id) {
    EXPECT_TRUE(
        machine_.on(event::UpdateAcknowledged{"F-0000", task_id, row(task_id)->updates.front().uuid}));
  }

  Machine machine_{2};
};

TEST_F(Frameworks, TellOfEachStateUntilItIsAcknowledged) {
  const auto id = start("t", 1);
  EXPECT_EQ(machine_.state.tasks.at(id).gpus.size(), 1u);
  EXPECT_TRUE(machine_.on(event::Ended{id, exited(0)}));
  EXPECT_THAT(updates("t"), ElementsAre("TASK_STARTING", "TASK_RUNNING", "TASK_FINISHED"));
  EXPECT_EQ(row("t")->updates.back().message, "Command exited with status 0");
  acknowledge("t");
  EXPECT_THAT(updates("t"), ElementsAre("TASK_RUNNING", "TASK_FINISHED"));
  EXPECT_TRUE(machine_.on(event::UpdateAcknowledged{"F-0000", "t", "another"}));
  EXPECT_THAT(updates("t"), SizeIs(2));
  acknowledge("t");
  acknowledge("t");
  EXPECT_EQ(row("t"), nullptr) << "nothing is left to tell";
}

TEST_F(Frameworks, AFailedCommandTellsItsStatus) {
  EXPECT_TRUE(machine_.on(event::Ended{start("t"), exited(3)}));
  EXPECT_EQ(row("t")->updates.back().state, "TASK_FAILED");
  EXPECT_EQ(row("t")->updates.back().message, "Command exited with status 3");
  EXPECT_EQ(row("t")->updates.back().reason, "") << "a reason would blame the agent";
}

TEST_F(Frameworks, OneThatEndsBeforeItsStartIsToldHasRun) {
  ASSERT_TRUE(machine_.on(event::FrameworkLaunched{{launch("t")}}));
  EXPECT_TRUE(machine_.on(event::Ended{row("t")->id, exited(0)}));
  EXPECT_THAT(updates("t"), ElementsAre("TASK_STARTING", "TASK_RUNNING", "TASK_FINISHED"));
}

TEST_F(Frameworks, KilledTasksSaySo) {
  const auto id = start("t");
  ASSERT_TRUE(machine_.on(event::StopRequested{id, false}));
  EXPECT_THAT(updates("t"), ElementsAre("TASK_STARTING", "TASK_RUNNING")) << "it does not know TASK_KILLING";
  EXPECT_TRUE(machine_.on(event::Ended{id, exited(143, true)}));
  EXPECT_EQ(updates("t").back(), "TASK_KILLED");

  auto record = aurora();
  record.knows_killing = true;
  ASSERT_TRUE(machine_.on(event::FrameworkSubscribed{"F-0000", record}));
  ASSERT_TRUE(machine_.on(event::StopRequested{start("u"), false}));
  EXPECT_EQ(updates("u").back(), "TASK_KILLING");
}

TEST_F(Frameworks, UpdatesHaveNamesOfTheirOwn) {
  start("t");
  start("u");
  std::set<std::string> names;
  for (const auto* task_id : {"t", "u"})
    for (const auto& update : row(task_id)->updates) {
      EXPECT_EQ(update.uuid.size(), 36u);
      names.insert(update.uuid);
    }
  EXPECT_THAT(names, SizeIs(4));
}

TEST_F(Frameworks, AGroupIsAGang) {
  ASSERT_TRUE(machine_.on(event::FrameworkLaunched{{launch("a", 1), launch("b", 1)}}));
  ASSERT_TRUE(machine_.on(event::Started{row("a")->id, kNow}));
  ASSERT_TRUE(machine_.on(event::Started{row("b")->id, kNow}));
  ASSERT_TRUE(machine_.on(event::Ended{row("a")->id, exited(1)}));
  ASSERT_TRUE(machine_.on(event::Ended{row("b")->id, exited(143, true)}));
  EXPECT_EQ(updates("a").back(), "TASK_FAILED");
  EXPECT_EQ(updates("b").back(), "TASK_KILLED");
  EXPECT_FALSE(machine_.on(event::FrameworkLaunched{{launch("c", 2), launch("d", 2)}}))
      << "that can never run";
  EXPECT_EQ(row("c"), nullptr);
}

TEST_F(Frameworks, AreToldOfTheEndOfAGroupsExecutorOnce) {
  auto a = launch("a");
  auto b = launch("b");
  a.executor_id = b.executor_id = "e";
  ASSERT_TRUE(machine_.on(event::FrameworkLaunched{{a, b}}));
  const auto ended_by = [&](const std::string& task_id) {
    const auto outcome = decide(machine_.state, event::Ended{row(task_id)->id, exited(0)}, kNow);
    std::vector<std::string> executors;
    for (const auto& notice : outcome->notices)
      if (const auto* ended = std::get_if<notice::ExecutorEnded>(&notice))
        executors.push_back(ended->executor);
    apply(machine_.state, *outcome);
    return executors;
  };
  EXPECT_THAT(ended_by("a"), IsEmpty()) << "b still runs";
  EXPECT_THAT(ended_by("b"), ElementsAre("e"));
  start("single");
  EXPECT_THAT(ended_by("single"), IsEmpty()) << "as in Mesos";
}

TEST_F(Frameworks, AreToldWhetherTheirTasksAreWell) {
  auto checked = launch("t");
  checked.health_check.emplace();
  checked.health_check->grace_period = seconds(10);
  checked.health_check->max_consecutive_failures = 2;
  ASSERT_TRUE(machine_.on(event::FrameworkLaunched{{checked}}));
  const auto id = row("t")->id;
  ASSERT_TRUE(machine_.on(event::Started{id, kNow}));
  const auto check = [&](bool passed, int after) {
    const auto at = kNow + seconds(after);
    ASSERT_TRUE(machine_.on(
        event::Checked{{.task = id, .passed = passed, .why = passed ? "" : "503", .at = at}}, at));
  };
  EXPECT_THAT(updates("t"), SizeIs(2));
  check(false, 5);
  EXPECT_THAT(updates("t"), SizeIs(2)) << "in the grace period";
  check(true, 6);
  ASSERT_THAT(updates("t"), SizeIs(3));
  EXPECT_EQ(row("t")->updates.back().state, "TASK_RUNNING");
  EXPECT_EQ(row("t")->updates.back().reason, "REASON_TASK_HEALTH_CHECK_STATUS_UPDATED");
  EXPECT_EQ(row("t")->updates.back().healthy, true);
  check(true, 7);
  EXPECT_THAT(updates("t"), SizeIs(3)) << "nothing new";
  check(false, 8);
  ASSERT_THAT(updates("t"), SizeIs(3)) << "of findings that nobody has heard only the last matters";
  EXPECT_EQ(row("t")->updates.back().healthy, false);
  EXPECT_EQ(machine_.state.tasks.at(id).state, TaskState::kRunning);
  check(false, 9);
  EXPECT_EQ(machine_.state.tasks.at(id).state, TaskState::kStopping);
  ASSERT_TRUE(machine_.on(event::Ended{id, exited(143, true)}));
  EXPECT_EQ(row("t")->updates.back().state, "TASK_KILLED");
  EXPECT_EQ(row("t")->updates.back().healthy, false);
  EXPECT_EQ(row("t")->updates.back().reason, "");
  EXPECT_EQ(row("t")->updates.back().message,
            "Command killed because its health check failed 2 times in a row: 503");
}

TEST_F(Frameworks, ResultsOfChecksThatNobodyAskedForChangeNothing) {
  const auto id = start("t");
  ASSERT_TRUE(machine_.on(event::Checked{{.task = id, .passed = false, .at = kNow}}));
  EXPECT_THAT(updates("t"), SizeIs(2));
}

TEST_F(Frameworks, IdsOfLivingTasksAreNotUsedAgain) {
  const auto id = start("t");
  const auto again = machine_.on(event::FrameworkLaunched{{launch("t")}});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message, "Task has duplicate ID: t");
  ASSERT_TRUE(machine_.on(event::Ended{id, exited(0)}));
  start("t");
  EXPECT_THAT(updates("t"), SizeIs(5)) << "what was not acknowledged of the first comes first";
}

TEST_F(Frameworks, AreRemovedWhenTheyStayAway) {
  const auto id = start("t");
  ASSERT_TRUE(machine_.on(event::FrameworkDisconnected{"F-0000"}));
  EXPECT_EQ(next_deadline(machine_.state), kNow + seconds(60));
  ASSERT_TRUE(machine_.on(event::FrameworkSubscribed{"F-0000", aurora()}));
  EXPECT_EQ(next_deadline(machine_.state), std::nullopt);
  ASSERT_TRUE(machine_.on(event::FrameworkDisconnected{"F-0000"}));
  ASSERT_TRUE(machine_.on(event::Tick{}, kNow + seconds(59)));
  EXPECT_EQ(machine_.state.tasks.at(id).state, TaskState::kRunning);
  ASSERT_TRUE(machine_.on(event::Tick{}, kNow + seconds(60)));
  EXPECT_EQ(machine_.state.tasks.at(id).state, TaskState::kStopping);
  EXPECT_THAT(machine_.state.framework_tasks, IsEmpty());
  const auto back = machine_.on(event::FrameworkSubscribed{"F-0000", aurora()});
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().message, "Framework has been removed");
  EXPECT_FALSE(machine_.on(event::FrameworkLaunched{{launch("u")}}));
  EXPECT_EQ(next_framework_id(machine_.state, "F"), "F-0001");
  ASSERT_TRUE(machine_.on(event::Tick{}, kNow + 2 * kKeepEnded));
  EXPECT_THAT(machine_.state.frameworks, IsEmpty());
}

TEST_F(Frameworks, WithoutAFailoverTimeoutAreRemovedAtOnce) {
  ASSERT_TRUE(machine_.on(event::FrameworkSubscribed{"F-0000", aurora(seconds(0))}));
  ASSERT_TRUE(machine_.on(event::FrameworkDisconnected{"F-0000"}));
  EXPECT_TRUE(machine_.state.frameworks.at("F-0000").removed_at);
}

TEST_F(Frameworks, HearThatATaskTookTooMuchOfTheDisk) {
  const auto id = start("t", 2);
  ASSERT_TRUE(machine_.on(event::Overdrawn{id, "what 'u' keeps on the disk grew to 2 GiB"}));
  EXPECT_THAT(machine_.asked<action::Stop>(), ElementsAre(id));
  machine_.restart();
  ASSERT_TRUE(machine_.on(event::Ended{id, exited(137, true)}));
  const auto last = row("t")->updates.back();
  EXPECT_EQ(last.state, "TASK_FAILED");
  EXPECT_EQ(last.reason, "REASON_CONTAINER_LIMITATION_DISK");
  EXPECT_EQ(last.message, "Command killed because what 'u' keeps on the disk grew to 2 GiB");
}

TEST_F(Frameworks, LoseForGoodWhatMakesRoomForOthers) {
  for (const bool knows_partitions : {false, true}) {
    auto record = aurora();
    record.knows_partitions = knows_partitions;
    ASSERT_TRUE(machine_.on(event::FrameworkSubscribed{"F-0000", record}));
    const auto name = knows_partitions ? "u" : "t";
    const auto id = start(name, 2);
    const auto winner = knows_partitions ? "high-u" : "high-t";
    ASSERT_TRUE(machine_.submit(testing::urgent(testing::task(winner, 1), 10)));
    EXPECT_THAT(machine_.asked<action::Stop>(), ElementsAre(id));
    EXPECT_THAT(updates(name), ElementsAre("TASK_STARTING", "TASK_RUNNING")) << "it runs until it has ended";

    machine_.restart();
    ASSERT_TRUE(machine_.on(event::StillAlive{id}));
    EXPECT_THAT(machine_.asked<action::Stop>(), ElementsAre(id));
    ASSERT_TRUE(machine_.on(event::Ended{id, exited(0, true)}));
    EXPECT_EQ(machine_.at(id), TaskState::kKilled);
    EXPECT_EQ(machine_.at(winner), TaskState::kStarting) << "what it had is free";
    machine_.restart();
    ASSERT_TRUE(machine_.on(event::Ended{winner, exited(0)}));
    EXPECT_EQ(machine_.at(id), TaskState::kKilled) << "it does not wait again";
    EXPECT_THAT(machine_.state.queue, IsEmpty());
    const auto last = row(name)->updates.back();
    EXPECT_EQ(last.state, knows_partitions ? "TASK_GONE" : "TASK_LOST");
    EXPECT_EQ(last.reason, "REASON_CONTAINER_PREEMPTED");
    EXPECT_EQ(last.message, fmt::format("Container preempted by work of higher priority, for '{}'", winner));
    EXPECT_THAT(updates(name), ElementsAre("TASK_STARTING", "TASK_RUNNING", last.state));
    for (int i = 0; i < 3; ++i) acknowledge(name);
    EXPECT_EQ(row(name), nullptr);
  }
  EXPECT_THAT(machine_.state.tasks.at(start("t", 1)).gpus, SizeIs(1)) << "it may launch it again";
}

TEST_F(Frameworks, AreNotToldOfTheWorkOfOthersThatTookThePlace) {
  auto low = launch("t", 2);
  low.task.owner = 1000;
  ASSERT_TRUE(machine_.on(event::FrameworkLaunched{{low}}));
  ASSERT_TRUE(machine_.submit(testing::urgent(testing::task("secret", 1), 10)));
  ASSERT_TRUE(machine_.on(event::LaunchFailed{row("t")->id, Error{ErrorKind::kUnavailable, "stopped"}}));
  EXPECT_THAT(updates("t"), ElementsAre("TASK_STARTING", "TASK_LOST")) << "it had not run";
  EXPECT_EQ(row("t")->updates.back().message, "Container preempted by work of higher priority");
}

TEST_F(Frameworks, OneThatEndedBeforeItWasAskedToMakeRoomHasEnded) {
  const auto id = start("t", 2);
  ASSERT_TRUE(machine_.submit(testing::urgent(testing::task("high", 1), 10)));
  ASSERT_TRUE(machine_.on(event::Ended{id, exited(0)}));
  EXPECT_EQ(updates("t").back(), "TASK_FINISHED");
}

TEST_F(Frameworks, AKillOutweighsThatItMakesRoom) {
  const auto id = start("t", 2);
  ASSERT_TRUE(machine_.submit(testing::urgent(testing::task("high", 1), 10)));
  ASSERT_TRUE(machine_.on(event::StopRequested{id}));
  ASSERT_TRUE(machine_.on(event::Ended{id, exited(143, true)}));
  EXPECT_EQ(updates("t").back(), "TASK_KILLED");
  EXPECT_EQ(row("t")->updates.back().reason, "");
}

TEST_F(Frameworks, AGroupMakesRoomAsAWhole) {
  ASSERT_TRUE(machine_.on(event::FrameworkLaunched{{launch("a", 1), launch("b", 1), launch("c")}}));
  for (const auto* name : {"a", "b", "c"}) ASSERT_TRUE(machine_.on(event::Started{row(name)->id, kNow}));
  ASSERT_TRUE(machine_.submit(testing::urgent(testing::task("high", 2), 10)));
  EXPECT_THAT(machine_.asked<action::Stop>(), SizeIs(3));
  ASSERT_TRUE(machine_.on(event::Ended{row("a")->id, exited(143, true)}));
  EXPECT_EQ(updates("a").back(), "TASK_LOST");
  EXPECT_THAT(machine_.asked<action::Stop>(), IsEmpty()) << "the others were asked already";
  EXPECT_EQ(machine_.at("high"), TaskState::kQueued);
  ASSERT_TRUE(machine_.on(event::Ended{row("c")->id, exited(0)}));
  EXPECT_EQ(updates("c").back(), "TASK_FINISHED") << "it came to its end by itself";
  ASSERT_TRUE(machine_.on(event::Ended{row("b")->id, exited(143, true)}));
  EXPECT_EQ(updates("b").back(), "TASK_LOST");
  EXPECT_EQ(machine_.at("high"), TaskState::kStarting);
  EXPECT_THAT(machine_.state.queue, IsEmpty());
}

TEST_F(Frameworks, AreToldWhatAnotherCheckFinds) {
  auto checked = launch("t");
  checked.health_check.emplace();
  checked.check.emplace();
  ASSERT_TRUE(machine_.on(event::FrameworkLaunched{{checked}}));
  const auto id = row("t")->id;
  ASSERT_TRUE(machine_.on(event::Started{id, kNow}));
  EXPECT_EQ(row("t")->updates.back().check_status, std::nullopt);
  const auto check = [&](std::optional<int> status, int after) {
    const auto at = kNow + seconds(after);
    ASSERT_TRUE(
        machine_.on(event::Checked{{.task = id, .check = kGeneralCheck, .status = status, .at = at}}, at));
  };
  check(std::nullopt, 1);
  EXPECT_THAT(updates("t"), SizeIs(2)) << "nothing is known, as before";
  ASSERT_TRUE(machine_.on(event::Checked{{.task = id, .passed = false, .at = kNow}}));
  check(7, 2);
  ASSERT_THAT(updates("t"), SizeIs(3));
  EXPECT_EQ(row("t")->updates.back().state, "TASK_RUNNING");
  EXPECT_EQ(row("t")->updates.back().reason, "REASON_TASK_CHECK_STATUS_UPDATED");
  EXPECT_EQ(row("t")->updates.back().check_status, 7);
  EXPECT_EQ(row("t")->updates.back().healthy, std::nullopt);
  check(7, 3);
  EXPECT_THAT(updates("t"), SizeIs(3)) << "nothing new";
  check(0, 4);
  ASSERT_THAT(updates("t"), SizeIs(3)) << "of findings that nobody has heard only the last matters";
  EXPECT_EQ(row("t")->updates.back().check_status, 0);
  ASSERT_TRUE(machine_.on(event::Checked{{.task = id, .passed = true, .at = kNow}}));
  ASSERT_THAT(updates("t"), SizeIs(4));
  EXPECT_EQ(row("t")->updates.back().check_status, 0) << "what is known is told with each update";
  check(1, 5);
  EXPECT_EQ(row("t")->updates.back().healthy, true);
  for (int i = 6; i < 30; ++i) {
    check(i, i);
    const auto at = kNow + seconds(i);
    ASSERT_TRUE(machine_.on(event::Checked{{.task = id, .passed = i % 2 == 0, .at = at}}, at));
  }
  EXPECT_THAT(updates("t"), SizeIs(4)) << "one of each, however often both change";
  EXPECT_EQ(machine_.state.tasks.at(id).state, TaskState::kRunning) << "nothing follows from it";
}

TEST_F(Frameworks, SurviveTheJournal) {
  start("t", 1);
  auto checked = launch("u");
  checked.health_check.emplace();
  checked.check.emplace();
  ASSERT_TRUE(machine_.on(event::FrameworkLaunched{{checked}}));
  Outcome all;
  for (const auto& [id, record] : machine_.state.frameworks) all.frameworks.emplace(id, record);
  for (const auto& [id, record] : machine_.state.framework_tasks) all.framework_tasks.emplace(id, record);
  const auto changes = changes_of(all);
  const auto read = testing::decode_journal({changes.put.begin(), changes.put.end()});
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->frameworks, machine_.state.frameworks);
  EXPECT_EQ(read->framework_tasks, machine_.state.framework_tasks);
}

}  // namespace
}  // namespace drover::control

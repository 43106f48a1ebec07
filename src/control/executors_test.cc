#include "control/executors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "control/executor_feed.h"
#include "control/testing/executors.h"
#include "control/testing/journal.h"

namespace drover::control {
namespace {

using testing::executor_launch;
using testing::exited;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kNow;
using ::testing::SizeIs;

class Executors : public ::testing::Test {
 protected:
  Executors() { EXPECT_TRUE(on(event::FrameworkSubscribed{"F", testing::framework_of_executors()})); }

  Status on(const Event& event, std::chrono::milliseconds later = {}) {
    return machine_.on(event, kNow + later);
  }
  Status launch(const ExecutorLaunch& launch) { return on(event::ExecutorLaunched{launch}); }
  const ExecutorRecord& executor(const std::string& id = "e") {
    return machine_.state.executors.at("F/" + id);
  }
  const FrameworkTask& row(const std::string& task) { return machine_.state.framework_tasks.at("F/" + task); }
  const StatusUpdate& last(const std::string& task) { return row(task).updates.back(); }
  /// The executor runs and has subscribed.
  void start(const std::vector<std::string>& tasks, int gpus = 0) {
    ASSERT_TRUE(launch(executor_launch("e", tasks, gpus)));
    ASSERT_TRUE(on(event::Started{executor().id, kNow}));
    ASSERT_TRUE(on(event::ExecutorSubscribed{"F", "e", {}}));
  }
  Status update(const std::string& task, const std::string& state, const std::string& uuid) {
    return on(event::ExecutorUpdated{"F", "e", {task, uuid, state, kNow, "{}"}});
  }

  testing::Machine machine_{2};
};

TEST_F(Executors, OneIsATaskWithAllThatItsFirstLaunchNeeds) {
  start({"a", "b"}, 1);
  const auto& record = machine_.record(executor().id);
  EXPECT_EQ(record.state, TaskState::kRunning);
  EXPECT_EQ(record.task.resources.milli_cpus, 300);
  EXPECT_THAT(record.gpus, SizeIs(1));
  EXPECT_EQ(row("a").told, "") << "only the executor says what became of its tasks";
  EXPECT_EQ(mesos_state(row("a"), &record, testing::framework_of_executors()), "TASK_STAGING");
}

TEST_F(Executors, ALaterLaunchHasWhatEndedTasksHaveLeft) {
  start({"a", "b"});
  auto later = executor_launch("e", {"c", "d", "x"});
  const auto refused = launch(later);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("there is cpus:0.1 left, not cpus:0.3"));
  later = executor_launch("e", {"c"});
  ASSERT_TRUE(launch(later)) << "the executor's own tenth is for its tasks, too";
  ASSERT_FALSE(launch(executor_launch("e", {"d"})));
  ASSERT_TRUE(update("a", "TASK_FINISHED", "u"));
  ASSERT_TRUE(launch(executor_launch("e", {"d"})));
  EXPECT_THAT(machine_.state.executors, SizeIs(1));
  EXPECT_EQ(machine_.record(executor().id).task.resources.milli_cpus, 300);
}

TEST_F(Executors, EachHostOfAClusterMayHaveOneOfAnId) {
  const auto on_host = [](const std::string& host, const std::string& task) {
    auto launch = executor_launch("e", {task});
    launch.host = host;
    launch.container.resources.attributes = {{"hostname", {host}}};
    return launch;
  };
  machine_.state.journal_id = "J";
  auto node = testing::node_with(2);
  node.attributes["hostname"] = {"n1", "n2"};  // it stands for both
  ASSERT_TRUE(on(event::NodeChanged{std::move(node)}));
  ASSERT_TRUE(launch(on_host("n1", "a")));
  ASSERT_TRUE(launch(on_host("n2", "b")));
  const auto named = [&](const std::string& agent) {
    return executor_named(machine_.state, "F", "e", agent);
  };
  const auto* first = named("J-S-n1");
  const auto* second = named("J-S-n2");
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_NE(first->id, second->id);
  EXPECT_EQ(named("J-S-n3"), nullptr);
  EXPECT_EQ(named("any"), nullptr) << "there are two";
  EXPECT_EQ(executor_in(machine_.state, second->id), second);
  ASSERT_TRUE(on(event::Started{first->id, kNow}));
  ASSERT_TRUE(on(event::ExecutorSubscribed{"F", "e", {}, "n1"}));
  EXPECT_TRUE(named("J-S-n1")->registered);
  EXPECT_FALSE(named("J-S-n2")->registered);
  ASSERT_TRUE(on(event::ExecutorUpdated{"F", "e", {"b", "u", "TASK_FINISHED", kNow, "{}"}, "n1"}));
  EXPECT_EQ(row("b").told, "") << "it is the other's";
  ASSERT_TRUE(on(event::ExecutorTaskKilled{"F", "a"}));
  EXPECT_TRUE(row("a").within->kill);
  ASSERT_TRUE(on(event::Ended{named("J-S-n1")->id, exited(0)}));
  EXPECT_EQ(last("a").reason, "REASON_EXECUTOR_TERMINATED");
  EXPECT_EQ(named("any"), named("J-S-n2")) << "the only one that is left";
}

TEST_F(Executors, WhatALivingOneCannotHaveIsRefusedInWords) {
  start({"a"});
  const auto with_gpu = launch(executor_launch("e", {"b"}, 1));
  ASSERT_FALSE(with_gpu);
  EXPECT_THAT(with_gpu.error().message, HasSubstr("launch the task on an executor of its own"));
  auto other = executor_launch("e", {"b"});
  other.info = R"({"executor_id":"e","name":"other"})";
  ASSERT_FALSE(launch(other));
  EXPECT_THAT(launch(executor_launch("e2", {"a"})).error().message, HasSubstr("duplicate ID: a"));
  EXPECT_THAT(launch(executor_launch("e2", {"x", "x"})).error().message, HasSubstr("duplicate ID: x"));
  ASSERT_TRUE(on(event::StopRequested{executor().id, false}));
  EXPECT_EQ(launch(executor_launch("e", {"b"})).error().kind, ErrorKind::kUnavailable);
}

TEST_F(Executors, UpdatesAreTakenOnceAndNoneAfterTheLast) {
  start({"a"});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(update("a", "TASK_RUNNING", "u1"));
  EXPECT_THAT(row("a").updates, SizeIs(1));
  EXPECT_EQ(last("a").status, "{}");
  ASSERT_TRUE(on(event::UpdateAcknowledged{"F", "a", "u1"}));
  ASSERT_TRUE(update("a", "TASK_RUNNING", "u1"));
  EXPECT_THAT(row("a").updates, IsEmpty()) << "its framework has heard it";
  ASSERT_TRUE(update("a", "TASK_FINISHED", "u2"));
  ASSERT_TRUE(update("a", "TASK_RUNNING", "u3"));
  EXPECT_THAT(row("a").updates, SizeIs(1));
  EXPECT_TRUE(is_taken(machine_.state, executor(), {"a", "u3", "TASK_RUNNING", kNow, ""}));
  ASSERT_TRUE(on(event::UpdateAcknowledged{"F", "a", "u2"}));
  EXPECT_THAT(machine_.state.framework_tasks, IsEmpty());
  ASSERT_TRUE(update("nobodys", "TASK_RUNNING", "u4"));
}

TEST_F(Executors, WhatNobodyAcknowledgesHasALimit) {
  start({"a"});
  machine_.state.limits.definition_bytes = 1000;
  const auto status = std::string(3000, 'x');
  const ExecutorUpdate first{"a", "u1", "TASK_RUNNING", kNow, status};
  const ExecutorUpdate second{"a", "u2", "TASK_RUNNING", kNow, std::string(5000, 'x')};
  ASSERT_TRUE(on(event::ExecutorUpdated{"F", "e", first}));
  EXPECT_EQ(on(event::ExecutorUpdated{"F", "e", second}).error().kind, ErrorKind::kExhausted);
  EXPECT_FALSE(is_taken(machine_.state, executor(), second)) << "it comes again";
  ASSERT_TRUE(on(event::ExecutorSubscribed{"F", "e", {second}})) << "no reason to keep it away";
  ASSERT_TRUE(on(event::UpdateAcknowledged{"F", "a", "u1"}));
  ASSERT_TRUE(on(event::ExecutorSubscribed{"F", "e", {second}}));
  EXPECT_TRUE(is_taken(machine_.state, executor(), second));
}

TEST_F(Executors, ItsEndIsThatOfItsTasks) {
  start({"a", "b"});
  ASSERT_TRUE(update("a", "TASK_FINISHED", "u"));
  ASSERT_TRUE(on(event::Ended{executor().id, exited(3)}));
  EXPECT_EQ(last("a").state, "TASK_FINISHED");
  EXPECT_EQ(last("b").state, "TASK_LOST");
  EXPECT_EQ(last("b").reason, "REASON_EXECUTOR_TERMINATED");
  EXPECT_EQ(last("b").message, "Executor terminated: exited with status 3");
  EXPECT_THAT(machine_.state.executors, IsEmpty());
}

TEST_F(Executors, OneThatUsesTooMuchMemoryFailsItsTasks) {
  start({"a"});
  auto ending = exited(137);
  ending.out_of_memory = true;
  ASSERT_TRUE(on(event::Ended{executor().id, ending}));
  EXPECT_EQ(last("a").state, "TASK_FAILED");
  EXPECT_EQ(last("a").reason, "REASON_CONTAINER_LIMITATION_MEMORY");
}

TEST_F(Executors, OneThatNeverRegistersIsEnded) {
  ASSERT_TRUE(launch(executor_launch("e", {"a"})));
  EXPECT_FALSE(next_deadline(machine_.state)) << "a container may take long to be made";
  ASSERT_TRUE(on(event::Started{executor().id, kNow}));
  const auto due = next_deadline(machine_.state);
  ASSERT_TRUE(due);
  EXPECT_EQ(*due, kNow + std::chrono::minutes(1));
  ASSERT_TRUE(on(event::Tick{}, std::chrono::minutes(1)));
  EXPECT_THAT(machine_.asked<action::Stop>(), SizeIs(1));
  ASSERT_TRUE(on(event::Ended{executor().id, exited(143, true)}));
  EXPECT_EQ(last("a").state, "TASK_FAILED");
  EXPECT_EQ(last("a").reason, "REASON_EXECUTOR_REGISTRATION_TIMEOUT");
  EXPECT_EQ(last("a").message, "Executor did not register within 1m 0s");
}

TEST_F(Executors, OneThatWasThereHasLongerToComeAgain) {
  start({"a"});
  EXPECT_FALSE(next_deadline(machine_.state));
  ASSERT_TRUE(on(event::ExecutorDisconnected{"F", "e"}));
  ASSERT_TRUE(on(event::Tick{}, std::chrono::minutes(14)));
  EXPECT_EQ(machine_.at(executor().id), TaskState::kRunning);
  ASSERT_TRUE(on(event::Tick{}, std::chrono::minutes(15)));
  ASSERT_TRUE(on(event::Ended{executor().id, exited(143, true)}));
  EXPECT_EQ(last("a").reason, "REASON_EXECUTOR_REREGISTRATION_TIMEOUT");
}

TEST_F(Executors, ATaskThatNobodyWasToldOfEndsAtOnce) {
  auto group = executor_launch("e", {"a", "b"});
  group.in_group = true;
  ASSERT_TRUE(launch(group));
  ASSERT_TRUE(launch(executor_launch("e", {"c"})));
  ASSERT_TRUE(on(event::ExecutorTaskKilled{"F", "a"}));
  EXPECT_EQ(last("a").state, "TASK_KILLED");
  EXPECT_EQ(last("b").state, "TASK_KILLED") << "a group is launched whole or not at all";
  EXPECT_THAT(row("c").updates, IsEmpty());
  const auto id = executor().id;
  ASSERT_TRUE(on(event::ExecutorTaskKilled{"F", "c"}));
  EXPECT_EQ(machine_.at(id), TaskState::kStopping) << "for whom should it come?";
}

TEST_F(Executors, ThoseOfARemovedFrameworkEndWithIt) {
  start({"a"});
  const auto id = executor().id;
  ASSERT_TRUE(on(event::FrameworkTornDown{"F"}));
  EXPECT_EQ(machine_.at(id), TaskState::kStopping);
  EXPECT_THAT(machine_.state.executors, IsEmpty());
  EXPECT_THAT(machine_.state.framework_tasks, IsEmpty());
  ASSERT_TRUE(on(event::Ended{id, exited(143, true)}));
}

TEST_F(Executors, AFeedTellsEachThingOnce) {
  using Kind = ExecutorOrder::Kind;
  auto group = executor_launch("e", {"a", "b"});
  group.in_group = true;
  ASSERT_TRUE(launch(group));
  ASSERT_TRUE(on(event::Started{executor().id, kNow}));
  ASSERT_TRUE(on(event::ExecutorSubscribed{"F", "e", {}}));
  ExecutorFeed feed({});
  auto orders = feed.next(machine_.state, executor());
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_EQ(orders[0].kind, Kind::kLaunchGroup);
  EXPECT_THAT(orders[0].tasks, SizeIs(2));
  ASSERT_TRUE(launch(executor_launch("e", {"c"})));
  ASSERT_TRUE(on(event::ExecutorTaskKilled{"F", "a", std::chrono::seconds(1)}));
  orders = feed.next(machine_.state, executor());
  ASSERT_THAT(orders, SizeIs(2));
  EXPECT_EQ(orders[0].kind, Kind::kLaunch);
  EXPECT_EQ(orders[0].tasks[0]->task_id, "c");
  EXPECT_EQ(orders[1].kind, Kind::kKill);
  EXPECT_EQ(orders[1].tasks[0]->within->kill_grace, std::chrono::seconds(1));
  EXPECT_THAT(feed.next(machine_.state, executor()), IsEmpty());
  ExecutorFeed again({"a", "b"});
  orders = again.next(machine_.state, executor());
  ASSERT_THAT(orders, SizeIs(2)) << "'c' got lost, and that 'a' is to end is said again";
  EXPECT_EQ(orders[0].tasks[0]->task_id, "c");
  // An id may be used again.
  ASSERT_TRUE(update("c", "TASK_FINISHED", "u"));
  ASSERT_TRUE(launch(executor_launch("e", {"c"})));
  EXPECT_THAT(again.next(machine_.state, executor()), SizeIs(1));
}

/// What a daemon of the first format with executors wrote.
TEST(ExecutorRows, OfTheFirstFormatAreRead) {
  std::map<std::string, std::string> entries;
  std::istringstream lines(read_file(DROVER_SOURCE_DIR "/tests/data/formats/1/executors.jsonl").value());
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    entries[row.at("key")] = row.at("text");
  }
  const auto read = testing::decode_journal(entries);
  ASSERT_TRUE(read) << to_string(read.error());
  for (const auto& error : read->unread) ADD_FAILURE() << to_string(error);
  const auto& executor = read->executors.begin()->second;
  EXPECT_EQ(executor.executor_id, "e");
  EXPECT_TRUE(executor.registered);
  EXPECT_GT(executor.given.milli_cpus, 0);
  ASSERT_FALSE(read->framework_tasks.empty());
  for (const auto& [key, task] : read->framework_tasks) {
    ASSERT_TRUE(task.within) << key;
    EXPECT_EQ(task.id, executor.id);
    EXPECT_THAT(task.within->info, HasSubstr(task.task_id));
  }
}

}  // namespace
}  // namespace drover::control

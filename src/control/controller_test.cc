#include "control/controller.h"

#include <gtest/gtest.h>

#include "control/testing/machine.h"

namespace drover::control {
namespace {

using testing::exited;
using testing::kNow;
using testing::Machine;
using testing::node_with;
using testing::task;

using namespace std::chrono_literals;

TEST(Controller, GivesIdentitiesAndTakesThemBack) {
  Machine machine(2);
  ASSERT_TRUE(machine.submit(task("a", 2)));
  EXPECT_EQ(machine.at("a"), TaskState::kStarting);
  EXPECT_EQ(uuids_of(machine.state.tasks.at("a")), (std::vector<std::string>{"GPU-0", "GPU-1"}));
  EXPECT_EQ(machine.asked<action::Launch>(), std::vector<std::string>{"a"});

  ASSERT_TRUE(machine.submit(task("b", 1)));
  EXPECT_EQ(machine.at("b"), TaskState::kQueued);
  EXPECT_EQ(machine.reasons("b").front(), "1 GPU is wanted and 0 of 2 are free");

  ASSERT_TRUE(machine.on(event::Ended{"a", exited(0)}));
  EXPECT_EQ(machine.at("a"), TaskState::kFinished);
  EXPECT_EQ(machine.at("b"), TaskState::kStarting);
  EXPECT_EQ(machine.asked<action::Clean>(), std::vector<std::string>{"a"});
  EXPECT_EQ(machine.asked<action::Launch>(), std::vector<std::string>{"b"});
}

TEST(Controller, RefusesWhatCanNeverRun) {
  Machine machine(2);
  const auto refused = machine.submit(task("a", 3));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "3 GPUs are asked for, but this machine has 2");
  EXPECT_TRUE(machine.state.tasks.empty());
}

TEST(Controller, APrivilegedTaskIsRefusedUnlessTheAdministratorAllowsIt) {
  Machine machine(2);
  auto privileged = task("a", 1);
  privileged.image = "x";
  privileged.privileged = true;
  const auto refused = machine.submit(privileged);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().path, "/privileged");
  EXPECT_TRUE(machine.state.tasks.empty());
  machine.state.privileged_allowed = true;
  EXPECT_TRUE(machine.submit(privileged));
  privileged.id = "b";
  privileged.container_type = workload::ContainerType::kMesos;
  EXPECT_FALSE(machine.submit(privileged)) << "only a Docker Engine's containers can be";
}

TEST(Controller, ALaterTaskPassesOnlyWhenItTakesNothingThatThoseAheadWaitFor) {
  Machine machine(2);
  ASSERT_TRUE(machine.submit(task("holder", 1)));
  auto big = task("big", 2);
  big.resources.milli_cpus = 3000;
  ASSERT_TRUE(machine.submit(big));
  ASSERT_TRUE(machine.submit(task("small", 1)));
  ASSERT_TRUE(machine.submit(task("cpu", 0)));
  EXPECT_EQ(machine.at("big"), TaskState::kQueued);
  EXPECT_EQ(machine.at("small"), TaskState::kQueued) << "a free GPU is kept for those ahead";
  EXPECT_EQ(machine.at("cpu"), TaskState::kStarting);
  EXPECT_EQ(machine.reasons("small").back(), "1 job stands before it; the first waits for 2 GPUs");

  auto hungry = task("hungry", 0);
  hungry.resources.milli_cpus =
      62'000;  // 64 less two running; but 'big' will need more than the holder leaves
  ASSERT_TRUE(machine.submit(hungry));
  EXPECT_EQ(machine.at("hungry"), TaskState::kQueued);
}

TEST(Controller, StopEndsAWaitingTaskAtOnceAndARunningOneThroughTheEngine) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(task("runs", 1)));
  ASSERT_TRUE(machine.submit(task("waits", 1)));
  ASSERT_TRUE(machine.on(event::StopRequested{"waits"}));
  EXPECT_EQ(machine.at("waits"), TaskState::kKilled);
  ASSERT_TRUE(machine.on(event::Started{"runs", kNow}));
  ASSERT_TRUE(machine.on(event::StopRequested{"runs"}));
  EXPECT_EQ(machine.at("runs"), TaskState::kStopping);
  EXPECT_EQ(machine.asked<action::Stop>(), std::vector<std::string>{"runs"});
  ASSERT_TRUE(machine.on(event::Ended{"runs", exited(143)}));
  EXPECT_EQ(machine.at("runs"), TaskState::kKilled);
  EXPECT_EQ(machine.on(event::StopRequested{"runs"}).error().kind, ErrorKind::kConflict);
}

TEST(Controller, ATaskThatEndsWithZeroBecauseItWasAskedToIsKilled) {
  for (const bool asked : {true, false}) {
    Machine machine(0);
    ASSERT_TRUE(machine.submit(task("a", 0)));
    ASSERT_TRUE(machine.on(event::StopRequested{"a"}));
    ASSERT_TRUE(machine.on(event::Ended{"a", exited(0, asked)}));
    EXPECT_EQ(machine.at("a"), asked ? TaskState::kKilled : TaskState::kFinished) << "it had ended before";
    EXPECT_EQ(machine.record("a").reason, asked ? "stopped on request" : "");
  }
}

TEST(Controller, StopsATaskWhoseTimeIsUp) {
  Machine machine(0);
  auto limited = task("a", 0);
  limited.timeout = 5s;
  ASSERT_TRUE(machine.submit(limited));
  EXPECT_EQ(next_deadline(machine.state), std::nullopt);
  ASSERT_TRUE(machine.on(event::Started{"a", kNow}));
  EXPECT_EQ(next_deadline(machine.state), kNow + 5s);
  ASSERT_TRUE(machine.on(event::Tick{}, kNow + 4s));
  EXPECT_EQ(machine.at("a"), TaskState::kRunning);
  ASSERT_TRUE(machine.on(event::Tick{}, kNow + 5s));
  EXPECT_EQ(machine.asked<action::Stop>(), std::vector<std::string>{"a"});
  ASSERT_TRUE(machine.on(event::Ended{"a", exited(143)}));
  EXPECT_EQ(machine.state.tasks.at("a").reason, "stopped because its time of 5.0s was up");
}

// Somebody sets the clock, and time limits go on as they were.
TEST(Controller, TimeIsNotUpBecauseTheClockWasSet) {
  for (const auto set : {-48h, 2h, 24h * 365}) {
    Machine machine(0);
    auto limited = task("a", 0);
    limited.timeout = 1h;
    ASSERT_TRUE(machine.submit(limited));
    ASSERT_TRUE(machine.submit(task("b", 0)));
    ASSERT_TRUE(machine.on(event::Started{"a", kNow}));
    ASSERT_TRUE(machine.on(event::Ended{"b", exited(0)}));
    const auto after = [&](auto time) { return Moment(kNow + time + set, kNow + time); };
    ASSERT_TRUE(machine.on(event::Tick{}, after(1min)));
    EXPECT_EQ(machine.at("a"), TaskState::kRunning);
    EXPECT_TRUE(machine.state.tasks.contains("b")) << "nor is what ended forgotten earlier";
    EXPECT_EQ(next_deadline(machine.state, after(1min)), kNow + 1h);
    machine.restart();
    ASSERT_TRUE(machine.on(event::Tick{}, after(59min)));
    EXPECT_EQ(machine.at("a"), TaskState::kRunning);
    ASSERT_TRUE(machine.on(event::Tick{}, after(60min)));
    EXPECT_EQ(machine.at("a"), TaskState::kStopping);
    ASSERT_TRUE(machine.on(event::Tick{}, after(kKeepEnded + 1min)));
    EXPECT_FALSE(machine.state.tasks.contains("b"));
  }
}

TEST(Controller, ATaskThatIsToldLateHasItsTimeFromItsStart) {
  Machine machine(0);
  auto limited = task("a", 0);
  limited.timeout = 1h;
  ASSERT_TRUE(machine.submit(limited));
  ASSERT_TRUE(machine.on(event::Started{"a", kNow}, Moment(kNow + 20min, kNow + 25min)));
  EXPECT_EQ(next_deadline(machine.state), kNow + 65min);
}

TEST(Controller, SaysHowATaskEnded) {
  workload::Limits limits;
  const auto reason_after = [&](workload::Ending ending) {
    Machine machine(0);
    auto submitted = task("a", 0);
    submitted.limits = limits;
    EXPECT_TRUE(machine.submit(submitted));
    EXPECT_TRUE(machine.on(event::Ended{"a", ending}));
    return machine.state.tasks.at("a").reason;
  };
  EXPECT_EQ(reason_after(exited(3)), "exited with status 3");
  EXPECT_EQ(reason_after(exited(139)), "ended by signal 11");
  auto oom = exited(137);
  oom.out_of_memory = true;
  EXPECT_EQ(reason_after(oom),
            "killed because it used more than its 1 GiB of memory; ask for more with --mem");
  limits.memory_bytes = 2ULL << 30;
  EXPECT_EQ(reason_after(oom),
            "killed because it used more than its 1 GiB of memory: the machine had no more, or its limit of "
            "2 GiB was reached");
  limits.memory_bytes = 0;
  EXPECT_EQ(reason_after(oom),
            "killed because it used more than its 1 GiB of memory: the machine had no more");
}

TEST(Controller, AfterARestartATaskIsLaunchedAgainOnlyIfItNeverStarted) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(task("a", 1)));
  ASSERT_TRUE(machine.on(event::NeverStarted{"a"}));
  EXPECT_EQ(machine.asked<action::Launch>(), std::vector<std::string>{"a"});
  ASSERT_TRUE(machine.on(event::Started{"a", kNow}));
  ASSERT_TRUE(machine.on(event::NeverStarted{"a"}));
  EXPECT_TRUE(machine.asked<action::Launch>().empty());
  EXPECT_EQ(machine.at("a"), TaskState::kLost);
}

TEST(Controller, ARequestToStopSurvivesARestart) {
  Machine machine(0);
  ASSERT_TRUE(machine.submit(task("a", 0)));
  ASSERT_TRUE(machine.on(event::StopRequested{"a"}));
  ASSERT_TRUE(machine.on(event::StillAlive{"a"}));
  EXPECT_EQ(machine.asked<action::Stop>(), std::vector<std::string>{"a"});
  ASSERT_TRUE(machine.on(event::NeverStarted{"a"}));
  EXPECT_EQ(machine.at("a"), TaskState::kKilled);
}

TEST(Controller, ForgetsEndedTasksAfterAWeek) {
  Machine machine(0);
  ASSERT_TRUE(machine.submit(task("a", 0)));
  ASSERT_TRUE(machine.on(event::Ended{"a", exited(0)}));
  ASSERT_TRUE(machine.on(event::Tick{}, kNow + kKeepEnded));
  EXPECT_TRUE(machine.state.tasks.contains("a"));
  ASSERT_TRUE(machine.on(event::Tick{}, kNow + kKeepEnded + 1s));
  EXPECT_FALSE(machine.state.tasks.contains("a"));
  EXPECT_EQ(machine.asked<action::Forget>(), std::vector<std::string>{"a"});
}

TEST(Controller, AnUnhealthyGpuIsNotGiven) {
  Machine machine(2);
  auto node = node_with(2);
  node.inventory.devices[0].unhealthy = "it has fallen off the bus";
  ASSERT_TRUE(machine.on(event::NodeChanged{node}));
  ASSERT_TRUE(machine.submit(task("a", 1)));
  EXPECT_EQ(uuids_of(machine.state.tasks.at("a")), std::vector<std::string>{"GPU-1"});
  ASSERT_TRUE(machine.submit(task("b", 1)));
  EXPECT_EQ(machine.reasons("b").front(), "1 GPU is wanted and 0 of 2 are free, 1 unfit");
  placement::Rules rules;
  rules.cordons["GPU-1"] = {"root", "a fan is loud"};
  ASSERT_TRUE(machine.on(event::RulesChanged{rules}));
  ASSERT_TRUE(machine.on(event::Ended{"a", exited(0)}));
  EXPECT_EQ(machine.reasons("b").front(), "1 GPU is wanted and 0 of 2 are free, 1 unfit, 1 cordoned");
  ASSERT_TRUE(machine.on(event::NodeChanged{node_with(2)}));
  EXPECT_EQ(machine.at("b"), TaskState::kStarting);
}

}  // namespace
}  // namespace drover::control

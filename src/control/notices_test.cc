// In which order what happened is told.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/testing/schedules.h"
#include "control/testing/services.h"

namespace drover::control {
namespace {

using ::testing::ElementsAre;
using testing::service;
using testing::Services;

std::string word(const Notice& notice) {
  if (const auto* moved = std::get_if<notice::TaskMoved>(&notice))
    return (moved->before ? std::string(to_string(*moved->before)) : "new") + " → " +
           std::string(to_string(moved->record.state));
  if (std::holds_alternative<notice::DefinitionsChanged>(notice)) return "defined";
  if (std::holds_alternative<notice::DeploymentStep>(notice)) return "step";
  if (std::holds_alternative<notice::DeploymentStepDone>(notice)) return "step done";
  if (const auto* ended = std::get_if<notice::DeploymentEnded>(&notice))
    return ended->success ? "done" : "given up";
  if (std::holds_alternative<notice::ServiceTerminated>(notice)) return "terminated";
  return "other";
}

std::vector<std::string> told(testing::Machine& machine, const Event& event, TimePoint now = testing::kNow) {
  auto outcome = decide(machine.state, event, now);
  EXPECT_TRUE(outcome);
  apply(machine.state, *outcome);
  std::vector<std::string> words;
  for (const auto& notice : outcome->notices) words.push_back(word(notice));
  return words;
}

TEST(Notices, OfATaskComeBeforeThoseOfTheDeploymentThatItBringsOn) {
  Services machine(0);
  EXPECT_THAT(told(machine, event::ServicesChanged{.put = {service("/a", 1)}}),
              ElementsAre("defined", "step", "step done", "step", "new → starting"));
  const auto id = machine.instances("/a").front()->task.id;
  EXPECT_THAT(told(machine, event::Started{id, testing::kNow}),
              ElementsAre("starting → running", "step done", "done"));
  EXPECT_THAT(told(machine, event::ServicesChanged{.removed = {"/a"}}),
              ElementsAre("defined", "step", "running → stopping"));
  EXPECT_THAT(told(machine, event::Ended{id, testing::exited(143, true)}),
              ElementsAre("stopping → killed", "terminated", "step done", "done"));
}

TEST(Notices, OfTasksComeInTheOrderInWhichTheyMoved) {
  Services machine(0);
  ASSERT_TRUE(machine.put(service("/a", 1)));
  machine.obey();
  auto next = service("/a", 1);
  next.task.environment.edit()["VERSION"] = "2";
  next.minimum_health = 1;
  ASSERT_TRUE(machine.put(next));
  const auto old = machine.instances("/a").front()->task.id, fresh = machine.instances("/a").back()->task.id;
  EXPECT_THAT(told(machine, event::Started{fresh, testing::kNow}),
              ElementsAre("starting → running", "running → stopping"));
  EXPECT_THAT(told(machine, event::Ended{old, testing::exited(143, true)}),
              ElementsAre("stopping → killed", "step done", "done"));
}

TEST(Notices, OfARunSayWhetherItIsItsLastAttemptWhateverOthersDo) {
  testing::Scheduler scheduler(0);
  auto job = testing::Scheduler::schedule("j", "R/" + format_time(scheduler.now) + "/PT1S");
  job.concurrent = true;
  ASSERT_TRUE(scheduler.define(job));
  scheduler.go(std::chrono::seconds(1));
  const auto runs = scheduler.record("j").active;
  ASSERT_EQ(runs.size(), 2U);
  const auto last = [&](const std::string& id, int status) {
    auto outcome = decide(scheduler.machine.state, event::Ended{id, testing::exited(status)}, scheduler.now);
    apply(scheduler.machine.state, *outcome);
    for (const auto& notice : outcome->notices)
      if (const auto* ended = std::get_if<notice::ScheduleRunEnded>(&notice)) return ended->last_attempt;
    ADD_FAILURE() << "nothing was told";
    return false;
  };
  EXPECT_FALSE(last(runs[0].task_id, 1));
  EXPECT_TRUE(last(runs[1].task_id, 0));
}

}  // namespace
}  // namespace drover::control

// Preemption: who makes room, goes back to the queue and starts afresh.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/draft.h"
#include "control/preview.h"
#include "control/testing/machine.h"

namespace drover::control {
namespace {

using namespace testing;  // NOLINT: the machine
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(Preemption, TheVictimWaitsAgainInItsOldPlaceAndStartsAfresh) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(task("low", 1)));
  ASSERT_TRUE(machine.on(event::Started{"low", kNow}));
  ASSERT_TRUE(machine.submit(task("later", 1)));
  const auto place = machine.record("low").sequence;
  ASSERT_TRUE(machine.submit(urgent(task("high", 1), 10)));
  EXPECT_THAT(machine.asked<action::Stop>(), ElementsAre("low"));
  EXPECT_EQ(machine.at("low"), TaskState::kStopping);
  EXPECT_EQ(machine.at("high"), TaskState::kQueued) << "until the room is free";

  ASSERT_TRUE(machine.on(event::Ended{"low", exited(143, true)}));
  EXPECT_EQ(machine.at("high"), TaskState::kStarting);
  const auto& low = machine.record("low");
  EXPECT_EQ(low.state, TaskState::kQueued);
  EXPECT_EQ(low.sequence, place);
  EXPECT_EQ(low.preemptions, 1);
  EXPECT_EQ(low.reason, "preempted by work of higher priority");
  EXPECT_THAT(low.gpus, IsEmpty());
  EXPECT_EQ(low.started_at, std::nullopt);
  EXPECT_EQ(low.exit_status, std::nullopt);

  ASSERT_TRUE(machine.on(event::Ended{"high", exited(0)}));
  EXPECT_THAT(machine.asked<action::Launch>(), ElementsAre("low")) << "it came before 'later'";
  ASSERT_TRUE(machine.on(event::Ended{"low", exited(0)}));
  EXPECT_EQ(machine.at("low"), TaskState::kFinished);
}

TEST(Preemption, WhoStartsAgainElsewhereAtOnceHoldsItsNewGpusOnly) {
  Machine machine(3);
  ASSERT_TRUE(machine.submit(urgent(task("first", 1), 5)));
  ASSERT_TRUE(machine.submit(task("low", 2)));
  ASSERT_TRUE(machine.submit(urgent(task("high", 1), 1)));
  ASSERT_TRUE(machine.on(event::StopRequested{"high"}));
  ASSERT_TRUE(machine.on(event::Ended{"first", exited(0)}));
  ASSERT_TRUE(machine.on(event::Ended{"low", exited(143, true)}));
  EXPECT_THAT(uuids_of(machine.record("low")), ElementsAre("GPU-0", "GPU-1")) << "it had the others";
  ASSERT_TRUE(machine.submit(task("next", 1)));
  EXPECT_THAT(uuids_of(machine.record("next")), ElementsAre("GPU-2"));
}

TEST(Preemption, ADraftSeesWhoStartedAgainElsewhereToo) {
  Machine machine(2);
  ASSERT_TRUE(machine.submit(task("first", 1)));
  ASSERT_TRUE(machine.submit(task("second", 1)));
  Draft draft(machine.state, kNow);
  std::swap(draft.change("first").gpus, draft.change("second").gpus);
  const auto cluster = draft.cluster();
  EXPECT_EQ(cluster.free("here").gpus, 0);
  EXPECT_EQ(cluster.find("first")->gpus, machine.record("second").gpus);
  draft.change("first").state = TaskState::kQueued;
  draft.change("second").gpus = machine.record("first").gpus;
  EXPECT_EQ(draft.cluster().free("here").gpus, 1);
}

TEST(Preemption, ATaskThatCatchesTheSignalAndExitsWith0HasStillWorkToDo) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(task("low", 1)));
  ASSERT_TRUE(machine.submit(urgent(task("high", 1), 1)));
  ASSERT_TRUE(machine.on(event::Ended{"low", exited(0, true)}));
  EXPECT_EQ(machine.at("low"), TaskState::kQueued);
}

TEST(Preemption, WhoCameToAnEndBeforeItWasAskedHasEnded) {
  for (const int status : {0, 3}) {
    Machine machine(1);
    ASSERT_TRUE(machine.submit(task("low", 1)));
    ASSERT_TRUE(machine.submit(urgent(task("high", 1), 1)));
    ASSERT_TRUE(machine.on(event::Ended{"low", exited(status)}));
    EXPECT_EQ(machine.at("low"), status == 0 ? TaskState::kFinished : TaskState::kFailed);
    EXPECT_FALSE(machine.record("low").preempted);
  }
}

TEST(Preemption, ARequestToStopOutweighsIt) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(task("low", 1)));
  ASSERT_TRUE(machine.submit(urgent(task("high", 1), 1)));
  ASSERT_TRUE(machine.on(event::StopRequested{"low"}));
  ASSERT_TRUE(machine.on(event::Ended{"low", exited(143, true)}));
  EXPECT_EQ(machine.at("low"), TaskState::kKilled);
}

TEST(Preemption, EqualPriorityIsNoReason) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(urgent(task("first", 1), 5)));
  ASSERT_TRUE(machine.submit(urgent(task("second", 1), 5)));
  EXPECT_EQ(machine.at("first"), TaskState::kStarting);
  EXPECT_EQ(machine.at("second"), TaskState::kQueued);
}

TEST(Preemption, AGangIsPutBackAsAWhole) {
  Machine machine(3);
  ASSERT_TRUE(machine.submit(gang("g", 3, 1)));
  ASSERT_TRUE(machine.submit(urgent(task("high", 1), 1)));
  EXPECT_THAT(machine.asked<action::Stop>(), UnorderedElementsAre("g-0", "g-1", "g-2"));
  ASSERT_TRUE(machine.on(event::Ended{"g-0", exited(143, true)}));
  EXPECT_EQ(machine.at("high"), TaskState::kStarting) << "its room is free";
  EXPECT_EQ(machine.at("g-0"), TaskState::kQueued);
  EXPECT_THAT(machine.reasons("g-0"), ElementsAre(HasSubstr("other members")));
  ASSERT_TRUE(machine.on(event::Ended{"g-1", exited(0)}));
  EXPECT_EQ(machine.at("g-1"), TaskState::kQueued) << "alone it could not go on where the others begin anew";
  ASSERT_TRUE(machine.on(event::Ended{"g-2", exited(143, true)}));
  EXPECT_EQ(machine.at("g-2"), TaskState::kQueued);
  ASSERT_TRUE(machine.on(event::Ended{"high", exited(0)}));
  EXPECT_THAT(machine.asked<action::Launch>(), UnorderedElementsAre("g-0", "g-1", "g-2"));
}

TEST(Preemption, AGangThatBeginsToEndIsNoVictim) {
  Machine machine(2);
  ASSERT_TRUE(machine.submit(gang("g", 2, 1)));
  ASSERT_TRUE(machine.on(event::Ended{"g-0", exited(0)}));
  ASSERT_TRUE(machine.submit(urgent(task("high", 2), 1)));
  EXPECT_THAT(machine.asked<action::Stop>(), IsEmpty());
  EXPECT_EQ(machine.at("g-1"), TaskState::kStarting);
}

// Wherever the daemon dies between the stop and the new start, the journal says how to go on.
TEST(Preemption, SurvivesARestartAtEveryStep) {
  for (int restart_after = 0; restart_after < 4; ++restart_after) {
    Machine machine(1);
    int step = 0;
    const auto passed = [&] {
      if (step++ != restart_after) return;
      machine.restart();
      ASSERT_TRUE(machine.on(event::Tick{}));
      for (const auto& id : SharedSet<std::string>(machine.state.active))
        ASSERT_TRUE(machine.on(event::StillAlive{id}));
    };
    ASSERT_TRUE(machine.submit(task("low", 1)));
    ASSERT_TRUE(machine.on(event::Started{"low", kNow}));
    ASSERT_TRUE(machine.submit(urgent(task("high", 1), 1)));
    passed();
    EXPECT_THAT(machine.asked<action::Stop>(), ElementsAre("low")) << "asked again after a restart";
    ASSERT_TRUE(machine.on(event::Ended{"low", exited(137, true)}));
    passed();
    ASSERT_TRUE(machine.on(event::Ended{"high", exited(0)}));
    passed();
    EXPECT_EQ(machine.at("low"), TaskState::kStarting);
    ASSERT_TRUE(machine.on(event::NeverStarted{"low"})) << "its second attempt had not begun";
    EXPECT_THAT(machine.asked<action::Launch>(), ElementsAre("low"));
    ASSERT_TRUE(machine.on(event::Started{"low", kNow}));
    passed();
    ASSERT_TRUE(machine.on(event::Ended{"low", exited(0)}));
    EXPECT_EQ(machine.at("low"), TaskState::kFinished);
    EXPECT_EQ(machine.record("low").preemptions, 1);
  }
}

TEST(Preview, SaysWhatWouldHappenAndDoesNothing) {
  Machine machine(2);
  ASSERT_TRUE(machine.submit(task("low", 2)));
  ASSERT_TRUE(machine.submit(task("waits", 1)));
  const auto before = machine.state.tasks;

  const auto wait = preview(machine.state, {task("new", 1)}, kNow).value();
  EXPECT_THAT(wait.decisions, IsEmpty());
  EXPECT_EQ(wait.place, 2);
  EXPECT_FALSE(wait.reasons.list.empty());

  const auto preempts = preview(machine.state, {urgent(task("new", 1), 3)}, kNow).value();
  EXPECT_THAT(preempts.victims, ElementsAre("low"));
  EXPECT_EQ(preempts.place, 1);

  const auto starts = preview(machine.state, gang("new", 2, 0), kNow).value();
  EXPECT_EQ(starts.decisions.size(), 2u);
  EXPECT_EQ(starts.place, 0);
  EXPECT_EQ(preview(machine.state, {task("new", 3)}, kNow).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(machine.state.tasks, before);
}

}  // namespace
}  // namespace drover::control

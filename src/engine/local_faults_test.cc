// What the journal cannot take: it is not said to be kept, and what has happened all the same is kept later.

#include <gmock/gmock.h>

#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;
using control::TaskState;
using testing::LocalEngineTest;

class LocalFaultsTest : public LocalEngineTest {
 protected:
  void tick() {
    now_ += 1s;
    engine_->tick();
    run();
  }
  std::size_t unsaved() const {
    metrics::DaemonFacts facts;
    engine_->add_facts(facts);
    return facts.unsaved_events;
  }
  std::size_t told(std::string_view part) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(log_, [&](const auto& line) { return line.find(part) != line.npos; }));
  }
};

TEST_F(LocalFaultsTest, WhatCannotBeKeptIsNotAccepted) {
  begin();
  for (const int code : {SQLITE_FULL, SQLITE_IOERR_WRITE}) {
    disk_.fail(code);
    EXPECT_FALSE(submit(1));
    disk_.recover();
  }
  EXPECT_TRUE(submit(1));
  begin();
  EXPECT_EQ(engine_->state().tasks.size(), 1u);
}

TEST_F(LocalFaultsTest, AnEndIsKeptLaterHoweverLongItTakes) {
  begin();
  const auto id = submit(1)->task.id;
  run();
  disk_.fail();
  end(id, 0);
  for (int second = 0; second < 500; ++second) tick();
  EXPECT_EQ(told("Failed to record what happened"), 1u) << "not once a second";
  EXPECT_LE(disk_.failures(), 2 * 501) << "ticks that wait are one";
  EXPECT_NE(state_of(id), TaskState::kFinished);
  disk_.recover();
  tick();
  EXPECT_EQ(state_of(id), TaskState::kFinished);
  begin();
  EXPECT_EQ(state_of(id), TaskState::kFinished);
}

TEST_F(LocalFaultsTest, AFrameworkThatGoesWhileNothingCanBeKeptIsGoneLater) {
  begin();
  control::FrameworkRecord record;
  record.name = "f";
  ASSERT_TRUE(change(control::event::FrameworkSubscribed{"F", record}));
  disk_.fail();
  engine_->happened(control::event::FrameworkDisconnected{"F", 5s});
  EXPECT_FALSE(engine_->state().frameworks.at("F").remove_at);
  disk_.recover();
  tick();
  EXPECT_TRUE(engine_->state().frameworks.at("F").remove_at);
  disk_.fail();
  engine_->happened(control::event::FrameworkTornDown{"F"});
  disk_.recover();
  tick();
  EXPECT_TRUE(engine_->state().frameworks.at("F").removed_at);
}

TEST_F(LocalFaultsTest, WhatIsToEndEndsAlthoughNothingCanBeKept) {
  begin(4);
  const auto one = submit(1)->task.id;
  const auto gang = *submit_gang(gang_of(2, 1));
  run();
  disk_.fail();
  engine_->happened(control::event::StopRequested{one, false});
  run();
  EXPECT_THAT(world_.stopped, ::testing::ElementsAre(one));
  disk_.recover();
  tick();
  EXPECT_EQ(state_of(one), TaskState::kStopping);
  disk_.fail();
  engine_->happened(control::event::StopRequested{gang[0].task.gang->id, true});
  run();
  EXPECT_THAT(world_.stopped, ::testing::IsSupersetOf({gang[0].task.id, gang[1].task.id}));
}

TEST_F(LocalFaultsTest, WhatIsAskedWhileNothingCanBeKeptIsRefusedAndAStopIsMadeOnce) {
  begin();
  control::FrameworkRecord record;
  record.name = "f";
  ASSERT_TRUE(change(control::event::FrameworkSubscribed{"F", record}));
  const auto id = submit(1)->task.id;
  run();
  EXPECT_TRUE(ask(control::event::StopRequested{"none", false})) << "the state would refuse it ever again";
  disk_.fail();
  EXPECT_FALSE(ask(control::event::FrameworkTornDown{"F"}));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(ask(control::event::StopRequested{id, false}));
  run();
  EXPECT_THAT(world_.stopped, ::testing::ElementsAre(id));
  EXPECT_EQ(unsaved(), 1u) << "a hundred wishes are one";
  disk_.recover();
  tick();
  EXPECT_EQ(state_of(id), TaskState::kStopping);
  EXPECT_FALSE(engine_->state().frameworks.at("F").removed_at) << "whoever was refused comes again";
}

TEST_F(LocalFaultsTest, NewsOfTheNodeThatCannotBeKeptAreOne) {
  begin();
  const auto id = submit(1)->task.id;
  run();
  disk_.fail();
  end(id, 0);
  for (int i = 1; i <= 100; ++i) {
    auto machine = engine_->state().machine();
    machine.attributes["seen"] = {std::to_string(i)};
    engine_->happened(control::event::NodeChanged{std::move(machine)});
  }
  EXPECT_EQ(unsaved(), 2u) << "the end, and the last news";
  disk_.recover();
  tick();
  EXPECT_EQ(engine_->state().machine().attributes.at("seen"), std::vector<std::string>{"100"});
}

TEST_F(LocalFaultsTest, AStopThatFailedIsMadeAgainUntilTheTaskHasEnded) {
  begin();
  const auto id = submit(1)->task.id;
  run();
  world_.stop_error = Error{ErrorKind::kInternal, "no memory", "", ""};
  engine_->stop({}, id, false, [](const auto&) {});
  run();
  for (int second = 0; second < 20; ++second) tick();
  EXPECT_EQ(told("Failed to stop"), 1u);
  world_.stop_error.reset();
  for (int second = 0; second < 20; ++second) tick();
  EXPECT_THAT(world_.stopped, ::testing::ElementsAre(id));
  world_.stop_error = Error{ErrorKind::kInternal, "no memory", "", ""};
  engine_->stop({}, id, true, [](const auto&) {});
  run();
  world_.stop_error.reset();
  end(id, 0);
  for (int second = 0; second < 20; ++second) tick();
  EXPECT_THAT(world_.stopped, ::testing::ElementsAre(id)) << "it has ended";
}

TEST_F(LocalFaultsTest, WhatTheStateRefusesHoldsUpNothing) {
  begin();
  const auto id = submit(1)->task.id;
  run();
  engine_->happened(control::event::StopRequested{"none", false});
  engine_->happened(control::event::FrameworkTornDown{"none"});
  end(id, 3);
  EXPECT_EQ(state_of(id), TaskState::kFailed);
  engine_->happened(control::event::StopRequested{id, false});  // it has ended
  const auto next = submit(2)->task.id;
  run();
  EXPECT_EQ(state_of(next), TaskState::kStarting);
}

}  // namespace
}  // namespace drover::engine

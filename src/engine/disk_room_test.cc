#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DiskRoomTest : public testing::LocalEngineTest {
 protected:
  std::string ended(std::uint64_t bytes, const Caller& caller) {
    const auto id = submit(0, caller)->task.id;
    run();
    end(id, 0);
    world_.space[id] = bytes;
    return id;
  }
  void pass(std::chrono::milliseconds time) {
    now_ += time;
    engine_->tick();
    run();
  }
  std::vector<std::string> problems() const {
    std::vector<std::string> messages;
    for (const auto& problem : engine_->problems()) messages.push_back(problem.message);
    return messages;
  }

  const Caller alice_{{1001, 1001, {}, "alice", "/"}}, bob_{{1002, 1002, {}, "bob", "/"}};
};

TEST_F(DiskRoomTest, EndedTasksMakeRoomWhenThereIsTooLittle) {
  free_ = 4 << 20;
  room_to_keep_ = free_ + 8;
  begin();
  const auto bobs = ended(50, bob_), first = ended(60, alice_), second = ended(70, alice_);
  const auto runs = submit(0, alice_)->task.id;
  run();
  pass(1min);
  EXPECT_THAT(world_.forgotten, IsEmpty()) << "people may still want to read what they left";
  EXPECT_THAT(problems(), Contains(HasSubstr("and then the oldest ended tasks are forgotten")));
  pass(15min);
  EXPECT_THAT(world_.forgotten, Contains(first));
  EXPECT_THAT(log_, Contains(HasSubstr("Task '" + first + "' of 'alice': it is forgotten, with the 60 B")));
  EXPECT_TRUE(engine_->task({}, runs));
  EXPECT_FALSE(engine_->task({}, first));
}

TEST_F(DiskRoomTest, WhatNobodyUsesGoesBeforeTasksDo) {
  free_ = 4 << 20;
  room_to_keep_ = 4 << 20;
  unused_ = 1 << 20;
  begin();
  const auto task = ended(1 << 20, alice_);
  submit_with([](workload::Task& queued) { queued.image = "redis:7"; }, bob_);
  free_ -= 1 << 19;
  pass(1h);
  EXPECT_EQ(unused_, 0U);
  EXPECT_THAT(named_, ElementsAre(control::ImageName{1002, "redis:7"}));
  EXPECT_THAT(world_.forgotten, IsEmpty()) << "there is room again";
  free_ -= 1 << 20;
  pass(1h);
  EXPECT_THAT(world_.forgotten, ElementsAre(task));
}

TEST_F(DiskRoomTest, NoMoreGoesThanIsNeededAndOnlyWhileItIs) {
  free_ = 4 << 20;
  room_to_keep_ = 4 << 20;
  begin();
  const auto first = ended(1 << 20, alice_), second = ended(1 << 20, alice_), third = ended(1 << 20, alice_);
  pass(1h);
  EXPECT_THAT(world_.forgotten, IsEmpty()) << "there is room";
  EXPECT_THAT(problems(), IsEmpty());
  free_ -= 1 << 20;
  pass(1min);
  EXPECT_THAT(world_.forgotten, ElementsAre(first, second)) << "and an eighth beyond it";
  pass(1s);
  EXPECT_THAT(world_.forgotten, ElementsAre(first, second)) << "what is removed comes free a little later";
  pass(1min);
  EXPECT_THAT(world_.forgotten, ElementsAre(first, second, third));
  free_ += 3 << 20;
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(DiskRoomTest, AFullDiskTakesNoNewWorkAndEndsWhatIsThere) {
  begin();
  const auto id = submit(1)->task.id;
  run();
  free_ = 0;
  const auto refused = submit(0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kExhausted);
  ASSERT_EQ(engine_->problems().size(), 1u);
  EXPECT_EQ(engine_->problems().front().kind, ErrorKind::kExhausted);
  engine_->stop({}, id, false, [](const auto& stopped) { EXPECT_TRUE(stopped); });
  run();
  EXPECT_THAT(world_.stopped, ElementsAre(id));
  end(id, 143);
  EXPECT_EQ(state_of(id), control::TaskState::kKilled);
  free_ = 1 << 30;
  EXPECT_TRUE(submit(0));
  EXPECT_THAT(engine_->problems(), IsEmpty());
}

}  // namespace
}  // namespace drover::engine

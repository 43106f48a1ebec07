#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/local.h"
#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;
using control::TaskState;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::LocalEngineTest;
using ::testing::Not;

class LingeringTest : public LocalEngineTest {
 protected:
  std::string running(int gpus) {
    const auto id = submit(gpus)->task.id;
    run();
    engine_->watcher().started(id, {42, now_});
    run();
    return id;
  }
  void stop(const std::string& id) {
    engine_->stop({}, id, false, [](const auto&) {});
    run();
  }
  void pass(std::chrono::milliseconds time) {
    now_ += time;
    engine_->tick();
    run();
  }
  std::string reason(const std::string& id) { return engine_->task({}, id)->reason; }
};

TEST_F(LingeringTest, ATaskThatDoesNotEndKeepsItsGpusAndSaysWhy) {
  begin();
  const auto stuck = running(2);
  stop(stuck);
  const auto next = submit(1)->task.id;
  world_.still_run[stuck] = "process 43 (train) hangs in the kernel";
  pass(10s + 14s);
  EXPECT_THAT(reason(stuck), Not(HasSubstr("43"))) << "what ends in time is not told of";
  pass(2s);
  EXPECT_EQ(
      reason(stuck),
      "it was killed and has not ended: process 43 (train) hangs in the kernel; until then nobody else is "
      "given its GPUs");
  EXPECT_THAT(engine_->explain({}, stuck)()->reasons, Contains(reason(stuck)));
  EXPECT_THAT(log_, Contains(HasSubstr("hangs in the kernel")));
  EXPECT_EQ(state_of(next), TaskState::kQueued);
  end(stuck, 137);
  EXPECT_EQ(state_of(next), TaskState::kStarting);
  EXPECT_THAT(reason(stuck), Not(HasSubstr("has not ended")));
}

TEST_F(LingeringTest, IsToldAgainAfterARestart) {
  begin();
  const auto stuck = running(0);
  stop(stuck);
  begin();
  world_.still_run[stuck] = "process 43 (train) still runs";
  pass(26s);
  EXPECT_EQ(reason(stuck), "it was killed and has not ended: process 43 (train) still runs");
}

TEST_F(LingeringTest, WhatChangesIsShownAndNotLoggedAgain) {
  begin();
  const auto stuck = running(0);
  stop(stuck);
  pass(26s);
  EXPECT_THAT(reason(stuck), HasSubstr("does not say that it has ended"));
  const auto lines = log_.size();
  world_.still_run[stuck] = "process 43 (train) hangs in the kernel";
  pass(31s);
  EXPECT_THAT(reason(stuck), HasSubstr("process 43"));
  EXPECT_EQ(log_.size(), lines);
}

}  // namespace
}  // namespace drover::engine

#include "engine/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;
using control::TaskState;
using ::testing::ElementsAre;
using testing::FakeContainerizer;
using ::testing::IsEmpty;

/// Over containers that live in memory; threads and the strand go on when the test says so.
class ExecutorTest : public ::testing::Test {
 protected:
  ExecutorTest() {
    executor_.start(std::make_unique<FakeContainerizer>(world_));
    auto& record = state_.tasks.edit("t");
    record.task.id = "t";
    record.state = TaskState::kStarting;
  }

  Ports ports() {
    Ports ports;
    ports.post = [this](Work work) { strand_.push_back(std::move(work)); };
    ports.pool = ports.slow_pool = [this](uid_t, Work work) { pool_.push_back(std::move(work)); };
    ports.now = ports.steady = [this] { return now_; };
    ports.wake_at = [this](TimePoint at) { wake_at_ = at; };
    ports.log = [this](const std::string& line) { log_.push_back(line); };
    return ports;
  }
  ExecutorHooks hooks() {
    return {[this](control::Event event) { events_.push_back(std::move(event)); },
            [](const auto&) { return [] { return std::optional<Error>(); }; }, [](const workload::Task&) {},
            [this](const std::string& id) { gone_.push_back(id); }};
  }
  static bool next(std::deque<Work>& queue) {
    if (queue.empty()) return false;
    const auto work = std::move(queue.front());
    queue.pop_front();
    work();
    return true;
  }
  void run() {
    while (next(pool_) || next(strand_)) {
    }
  }

  TimePoint now_{1h};
  TimePoint wake_at_{};
  std::deque<Work> strand_, pool_;
  std::vector<std::string> log_, gone_;
  std::vector<control::Event> events_;
  testing::World world_;
  control::State state_ = control::restore({}, placement::Node{.name = "here"});
  const Ports ports_ = ports();
  Executor executor_{ports_, state_, hooks()};
};

TEST_F(ExecutorTest, ALaunchReadsNothingOfTheStateOnItsThread) {
  state_.limits.processes = 7;
  executor_.perform(control::action::Launch{"t"});
  state_ = control::State();  // the strand goes on meanwhile
  ASSERT_TRUE(next(pool_));
  EXPECT_EQ(world_.processes["t"], 7);
}

TEST_F(ExecutorTest, WorkAboutOneTaskIsDoneInOrder) {
  executor_.perform(control::action::Launch{"t"});
  executor_.perform(control::action::Forget{"t"});
  ASSERT_EQ(pool_.size(), 1u) << "one at a time";
  ASSERT_TRUE(next(pool_));
  EXPECT_TRUE(pool_.empty()) << "not before the strand knows how the first ended";
  ASSERT_TRUE(next(strand_));
  EXPECT_THAT(world_.forgotten, IsEmpty());
  run();
  EXPECT_THAT(world_.forgotten, ElementsAre("t"));
  EXPECT_THAT(gone_, ElementsAre("t"));
}

TEST_F(ExecutorTest, AStopReachesALaunchThatWaitsForAThread) {
  executor_.perform(control::action::Launch{"t"});
  state_.tasks.edit("t").state = TaskState::kStopping;
  executor_.perform(control::action::Stop{"t", false});
  ASSERT_EQ(pool_.size(), 2u);
  std::swap(pool_[0], pool_[1]);  // the launch is still behind fetches that take hours
  run();
  EXPECT_THAT(world_.launches, IsEmpty());
  ASSERT_EQ(events_.size(), 1u) << "and is given up once";
  EXPECT_TRUE(std::holds_alternative<control::event::LaunchFailed>(events_[0]));
  EXPECT_THAT(world_.stopped, ElementsAre("t"));
}

TEST_F(ExecutorTest, WhatFailedIsToldOnceAndTriedAgain) {
  state_.tasks.edit("t").state = TaskState::kFinished;
  world_.clean_error = Error{ErrorKind::kTimeout, "600 processes do not end", "", ""};
  executor_.perform(control::action::Clean{"t"});
  run();
  for (int again = 0; again < 3; ++again) {
    ASSERT_GT(wake_at_, now_);
    now_ = wake_at_;
    executor_.try_again();
    run();
  }
  EXPECT_THAT(log_,
              ElementsAre("Failed to clean up after task 't', and will try again: 600 processes do not end"));
  world_.clean_error.reset();
  for (int again = 0; again < 3; ++again) {
    now_ += 1min;
    executor_.try_again();
    run();
  }
  EXPECT_THAT(world_.cleaned, ElementsAre("t")) << "until it succeeds";
}

TEST_F(ExecutorTest, WhatIsNeededNoMoreIsNotTriedAgain) {
  state_.tasks.edit("t").state = TaskState::kFinished;
  world_.clean_error = Error{ErrorKind::kTimeout, "600 processes do not end", "", ""};
  executor_.perform(control::action::Clean{"t"});
  run();
  state_.tasks.edit("t").state = TaskState::kStarting;  // another attempt cleans up before it begins
  world_.clean_error.reset();
  now_ = wake_at_;
  executor_.try_again();
  run();
  EXPECT_THAT(world_.cleaned, IsEmpty());
}

TEST_F(ExecutorTest, WhatIsBeingDoneIsSaidWhileTheTaskStarts) {
  EXPECT_EQ(executor_.preparing().count("t"), 0U);
  executor_.perform(control::action::Launch{"t"});
  run();
  world_.asked.front().progress("fetching");
  run();
  EXPECT_EQ(executor_.preparing().at("t"), "fetching");
  state_.tasks.edit("t").state = TaskState::kRunning;
  executor_.moved(state_.tasks.at("t"));
  EXPECT_EQ(executor_.preparing().count("t"), 0U);
}

}  // namespace
}  // namespace drover::engine

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/local.h"
#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;
using control::TaskState;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::LocalEngineTest;

constexpr std::uint64_t kMiB = 1 << 20;

class DiskUseTest : public LocalEngineTest {
 protected:
  DiskUseTest() { limits_.sandbox_bytes = 100 * kMiB; }

  std::string running(const Caller& caller) {
    const auto id = submit(0, caller)->task.id;
    run();
    engine_->watcher().started(id, {42, now_});
    run();
    return id;
  }
  void pass(std::chrono::milliseconds time = 10s) {
    now_ += time;
    engine_->tick();
    run();
  }

  const Caller alice_{{1001, 1001, {}, "alice", "/"}}, bob_{{1002, 1002, {}, "bob", "/"}};
};

TEST_F(DiskUseTest, TheTaskThatGrewIsEnded) {
  begin();
  const auto quiet = running(alice_), hog = running(alice_), others = running(bob_);
  world_.space = {{quiet, 60 * kMiB}, {hog, 30 * kMiB}, {others, 90 * kMiB}};
  pass();
  EXPECT_THAT(world_.stopped, IsEmpty());
  world_.space[hog] = 50 * kMiB;
  pass();
  EXPECT_EQ(world_.stopped, std::vector<std::string>{hog});
  end(hog, 137);
  EXPECT_EQ(state_of(hog), TaskState::kFailed);
  EXPECT_THAT(
      engine_->task(alice_, hog)->reason,
      HasSubstr("killed because what 'alice' keeps on the disk grew to 110 MiB, and 100 MiB are allowed"));
}

TEST_F(DiskUseTest, WhatEndedTasksLeftCountsUntilItIsRemoved) {
  begin();
  const auto before = running(alice_);
  world_.space[before] = 90 * kMiB;
  pass();
  end(before, 0);
  const auto next = running(alice_);
  world_.space[next] = 20 * kMiB;
  pass();
  EXPECT_EQ(world_.stopped, std::vector<std::string>{next});
  end(next, 137);
  EXPECT_TRUE(remove(before, alice_));
  EXPECT_TRUE(remove(next, alice_));
  const auto last = running(alice_);
  world_.space[last] = 20 * kMiB;
  pass();
  EXPECT_EQ(state_of(last), TaskState::kRunning);
}

TEST_F(DiskUseTest, WhoOnlyWritesDownWhatHeDoesGoesOn) {
  begin();
  const auto before = running(alice_), next = running(alice_);
  world_.space = {{before, 99 * kMiB}, {next, kMiB / 2}};
  pass();
  world_.space[next] = kMiB * 5 / 4;
  pass();
  EXPECT_THAT(world_.stopped, IsEmpty());
  for (int i = 0; i < 4; ++i) {
    world_.space[next] += kMiB / 4;
    pass();
  }
  EXPECT_EQ(world_.stopped.front(), next) << "little by little it is not little";
}

TEST_F(DiskUseTest, RootMay) {
  begin();
  const auto id = running({});
  world_.space[id] = 1000 * kMiB;
  pass();
  EXPECT_THAT(world_.stopped, IsEmpty());
}

}  // namespace
}  // namespace drover::engine

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/local.h"
#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;
using control::TaskState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::LocalEngineTest;

class IdleGpusTest : public LocalEngineTest {
 protected:
  std::string running(std::chrono::milliseconds may_be_idle) {
    const auto id = submit_with([&](workload::Task& task) {
                      task.resources.gpus = {{1, {}}};
                      task.batch.idle_timeout = may_be_idle;
                    })->task.id;
    run();
    started(id);
    return id;
  }
  void started(const std::string& id) {
    engine_->watcher().started(id, {42, now_});
    run();
  }
  void pass(std::chrono::milliseconds time) {
    for (; time > 0ms; time -= 1s) {
      now_ += 1s;
      engine_->tick();
      run();
    }
  }
};

TEST_F(IdleGpusTest, IsStoppedWhenItsGpusDidNothingForSoLong) {
  begin();
  const auto id = running(60s);
  world_.busy = {id};
  pass(300s);
  EXPECT_THAT(world_.stopped, IsEmpty());
  world_.busy = {};
  pass(55s);
  EXPECT_THAT(world_.stopped, IsEmpty());
  pass(15s);
  EXPECT_THAT(world_.stopped, ElementsAre(id));
  end(id, 0);
  EXPECT_EQ(state_of(id), TaskState::kFailed) << "although it ended well when it was asked";
  const auto record = engine_->task({}, id);
  EXPECT_EQ(record->reason, "stopped because its GPUs did nothing for 1m");
  EXPECT_EQ(record->cause, control::Cause::kIdle);
}

TEST_F(IdleGpusTest, IsWarnedOnceWhenHalfOfThatIsOver) {
  begin();
  const auto id = running(60s);
  const auto warnings = [&] {
    std::vector<std::string> words;
    for (const auto& event : told())
      if (event.kind == "task_idle") words.push_back(event.message);
    return words;
  };
  pass(24s);
  EXPECT_THAT(warnings(), IsEmpty());
  pass(18s);
  ASSERT_EQ(warnings().size(), 1U);
  EXPECT_THAT(warnings().front(), ::testing::HasSubstr("its GPUs have done nothing for 3"));
  world_.busy = {id};
  pass(12s);
  world_.busy = {};
  pass(48s);
  EXPECT_EQ(warnings().size(), 2U) << "it had worked meanwhile";
  EXPECT_THAT(world_.stopped, IsEmpty());
}

TEST_F(IdleGpusTest, WorkNowAndThenIsEnough) {
  begin();
  const auto id = running(60s);
  for (int i = 0; i < 10; ++i) {
    world_.busy = {};
    pass(50s);
    world_.busy = {id};
    pass(8s);
  }
  EXPECT_THAT(world_.stopped, IsEmpty());
}

TEST_F(IdleGpusTest, NobodyElseIsLookedAt) {
  begin();
  const auto forever = submit(1)->task.id;
  run();
  started(forever);
  pass(3600s);
  EXPECT_THAT(world_.stopped, IsEmpty());
}

TEST_F(IdleGpusTest, AfterARestartTheTimeBeginsAnew) {
  begin();
  const auto id = running(60s);
  pass(50s);
  begin();
  started(id);
  pass(50s);
  EXPECT_THAT(world_.stopped, IsEmpty());
  pass(20s);
  EXPECT_THAT(world_.stopped, ElementsAre(id));
}

TEST_F(IdleGpusTest, AGangIsIdleWhenAllOfItAre) {
  begin();
  auto request = gang_of(2, 1);
  for (auto& member : request.members) member.task.batch.idle_timeout = 60s;
  const auto members = submit_gang(request);
  ASSERT_TRUE(members);
  run();
  for (const auto& member : *members) started(member.task.id);
  world_.busy = {members->back().task.id};
  pass(300s);
  EXPECT_THAT(world_.stopped, IsEmpty());
  world_.busy = {};
  pass(70s);
  EXPECT_THAT(world_.stopped, ElementsAre(members->front().task.id, members->back().task.id));
}

}  // namespace
}  // namespace drover::engine

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/local.h"
#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using control::TaskState;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::LocalEngineTest;

class StraysTest : public LocalEngineTest {
 protected:
  /// Of a task with so many GPUs that runs.
  std::string running(int gpus) {
    const auto id = submit(gpus)->task.id;
    run();
    engine_->watcher().started(id, {42, now_});
    run();
    return id;
  }
};

TEST_F(StraysTest, ATaskThatRunsIsTakenUpAgainWhenTheJournalIsLost) {
  begin();
  const auto id = running(1);
  lose_journal();
  begin();
  EXPECT_EQ(world_.launches[id], 1);
  EXPECT_THAT(world_.alive, ElementsAre(id));
  EXPECT_THAT(world_.stopped, IsEmpty());
  EXPECT_EQ(engine_->node().gpus_free, 1) << "its GPU is nobody else's";
  EXPECT_THAT(log_, Contains(HasSubstr(id)));
  begin();
  EXPECT_EQ(engine_->node().gpus_free, 1) << "the new journal has it";
  end(id, 0);
  EXPECT_EQ(state_of(id), TaskState::kFinished);
  EXPECT_EQ(engine_->node().gpus_free, 2);
}

TEST_F(StraysTest, ItBelongsToNobodyWhoWouldEndItByHimself) {
  begin();
  const auto id = running(0);
  auto record = *control::decode_record(nlohmann::json::parse(world_.records[id]));
  record.task.origin = {workload::OriginKind::kService, "/web", "web.1", "v1"};
  record.task.queue = "gone";
  world_.records[id] = control::text_of(record);
  lose_journal();
  begin();
  const auto taken = engine_->task({}, id);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->task.origin.kind, workload::OriginKind::kPerson);
  EXPECT_EQ(taken->task.queue, placement::kDefaultQueue);
}

TEST_F(StraysTest, WhatEndedIsKeptInQuarantine) {
  begin();
  const auto id = running(1);
  end(id, 0);
  lose_journal();
  begin();
  EXPECT_THAT(world_.quarantined, ElementsAre(id));
  EXPECT_THAT(world_.forgotten, IsEmpty());
  ASSERT_EQ(engine_->problems().size(), 1u);
  EXPECT_THAT(engine_->problems().front().message, HasSubstr(id));
  EXPECT_FALSE(engine_->task({}, id));
  begin();
  EXPECT_EQ(engine_->problems().size(), 1u) << "until somebody has taken it away";
}

TEST_F(StraysTest, WhatWasRemovedIsNotKept) {
  begin();
  const auto id = running(0);
  end(id, 0);
  world_.forget_error = Error{ErrorKind::kInternal, "the disk is away", "", ""};
  EXPECT_TRUE(remove(id));
  run();
  EXPECT_THAT(world_.forgotten, IsEmpty());
  begin();
  EXPECT_THAT(world_.forgotten, IsEmpty());
  world_.forget_error.reset();
  now_ += std::chrono::minutes(1);
  engine_->tick();
  run();
  EXPECT_THAT(world_.forgotten, ElementsAre(id)) << "tried again";
  EXPECT_THAT(world_.quarantined, IsEmpty());
  ASSERT_TRUE(submit(0));
  begin();
  EXPECT_THAT(world_.forgotten, ElementsAre(id)) << "once it is gone nothing is left to do";
}

// A backup from before the second task came to run: the GPU that it got since is not given again.
TEST_F(StraysTest, AnOlderJournalDoesNotKnowWhereItRuns) {
  begin(1);
  const auto first = running(1);
  const auto second = submit(1)->task.id;
  run();
  ASSERT_EQ(state_of(second), TaskState::kQueued);
  const auto backup = folder_ / "backup";
  engine_->backup({}, [&](Result<std::shared_ptr<UniqueFd>> copy) {
    ASSERT_TRUE(copy) << to_string(copy.error());
    std::filesystem::copy_file("/proc/self/fd/" + std::to_string((*copy)->get()), backup);
  });
  run();
  end(first, 0);
  ASSERT_EQ(world_.launches[second], 1);
  lose_journal();
  std::filesystem::copy_file(backup, folder_ / "state.db");
  begin(1);
  EXPECT_EQ(world_.launches[second], 1) << "it runs already";
  EXPECT_EQ(world_.launches[first], 1);
  EXPECT_EQ(engine_->node().gpus_free, 0);
  EXPECT_EQ(state_of(first), TaskState::kLost);
  EXPECT_EQ(state_of(second), TaskState::kStarting);
  EXPECT_THAT(world_.quarantined, IsEmpty());
}

TEST_F(StraysTest, WhatRunsWithoutARecordIsEndedAndKept) {
  world_.alive.insert("stray");
  begin();
  EXPECT_THAT(world_.alive, IsEmpty());
  EXPECT_THAT(world_.quarantined, ElementsAre("stray"));
  EXPECT_THAT(log_, Contains(HasSubstr("it is ended")));
}

TEST_F(StraysTest, ARecordOfAnotherTaskIsNone) {
  begin();
  const auto id = running(1);
  world_.alive.insert("stray");
  world_.records["stray"] = world_.records[id];
  begin();
  EXPECT_THAT(world_.quarantined, ElementsAre("stray"));
  EXPECT_THAT(world_.alive, ElementsAre(id));
}

TEST_F(StraysTest, NothingIsGivenBesideWhatCannotBeEnded) {
  world_.alive.insert("stray");
  world_.endless.insert("stray");
  begin();
  ASSERT_FALSE(started_);
  EXPECT_THAT(started_.error().message, HasSubstr("stray"));
}

}  // namespace
}  // namespace drover::engine

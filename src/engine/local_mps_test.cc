// The engine and groups whose tasks share GPUs by MPS.

#include <gmock/gmock.h>

#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using control::TaskState;
using ::testing::HasSubstr;
using workload::ShareBy;

class LocalMpsTest : public testing::LocalEngineTest {
 protected:
  Result<control::TaskRecord> submit_member(ShareBy by = ShareBy::kMps, const std::string& group = "train",
                                            const Caller& caller = {}) {
    auto record = submit_with(
        [&](workload::Task& task) {
          task.resources.gpus = {{1, {}}};
          task.resources.group = group;
          task.resources.share_by = by;
        },
        caller);
    run();
    return record;
  }
  void wait_and_run() {
    now_ += std::chrono::minutes(1);
    engine_->tick();
    run();
  }
};

TEST_F(LocalMpsTest, MembersAreLaunchedIntoTheGroupOfTheirOwner) {
  begin(2);
  Caller alice;
  alice.user.uid = 1000;
  alice.user.name = "alice";
  ASSERT_TRUE(submit_member());
  ASSERT_TRUE(submit_member());
  ASSERT_TRUE(submit_member(ShareBy::kMps, "train", alice));
  ASSERT_EQ(world_.asked.size(), 3U);
  EXPECT_EQ(world_.asked[0].mps_group, "group-0-train");
  EXPECT_EQ(world_.asked[1].mps_group, world_.asked[0].mps_group);
  EXPECT_EQ(world_.asked[1].gpu_uuids, world_.asked[0].gpu_uuids);
  EXPECT_EQ(world_.asked[2].mps_group, "group-1000-train");
  EXPECT_NE(world_.asked[2].gpu_uuids, world_.asked[0].gpu_uuids);
  EXPECT_TRUE(world_.asked[0].gpu_shares.empty());
  EXPECT_EQ(engine_->task({}, "t1")->task.resources.share_by, ShareBy::kMps);
}

TEST_F(LocalMpsTest, AGroupSharesInOneWay) {
  begin(2);
  ASSERT_TRUE(submit_member());
  const auto plain = submit_member(ShareBy::kAuto);
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().path, "/share_by");
  EXPECT_THAT(plain.error().message, HasSubstr("The group 'train' has its GPUs by MPS, and task 't1'"));
  ASSERT_TRUE(submit_member(ShareBy::kAuto, "other"));
  EXPECT_EQ(world_.asked.back().mps_group, "");
  EXPECT_THAT(submit_member(ShareBy::kMps, "other").error().message, HasSubstr("without MPS"));
  end("t1", 0);
  EXPECT_TRUE(submit_member(ShareBy::kAuto)) << "the group is over, and a new one begins";
}

TEST_F(LocalMpsTest, WhatWaitsWithAnotherWordWaitsForTheGroupsEnd) {
  begin(1);
  ASSERT_TRUE(submit_member(ShareBy::kAuto, "other"));
  ASSERT_TRUE(submit_member());
  ASSERT_TRUE(submit_member(ShareBy::kAuto));
  end("t1", 0);
  run();
  EXPECT_EQ(engine_->task({}, "t2")->state, TaskState::kStarting);
  EXPECT_EQ(engine_->task({}, "t3")->state, TaskState::kQueued);
  EXPECT_THAT(engine_->task({}, "t3")->reason, HasSubstr("its group has its GPUs by MPS"));
  end("t2", 0);
  run();
  EXPECT_EQ(engine_->task({}, "t3")->state, TaskState::kStarting);
}

TEST_F(LocalMpsTest, WhatCannotBeStartedIsSaid) {
  begin(1);
  world_.launch_error = Error{ErrorKind::kNotFound, "this machine has no 'nvidia-cuda-mps-control'", "", ""};
  ASSERT_TRUE(submit_member());
  EXPECT_EQ(engine_->task({}, "t1")->state, TaskState::kFailed);
  EXPECT_THAT(engine_->task({}, "t1")->reason, HasSubstr("nvidia-cuda-mps-control"));
}

TEST_F(LocalMpsTest, WhatIsNotUndoneKeepsItsGpusFromOthers) {
  begin(1);
  world_.launch_error = Error{ErrorKind::kUnavailable, "its GPUs cannot be shared by MPS", "", ""};
  world_.clean_error = Error{ErrorKind::kTimeout, "nvidia-smi does not answer", "", ""};
  ASSERT_TRUE(submit_member());
  world_.launch_error.reset();
  ASSERT_TRUE(submit_member(ShareBy::kAuto, "other"));
  EXPECT_EQ(engine_->task({}, "t1")->state, TaskState::kStarting);
  EXPECT_EQ(engine_->task({}, "t2")->state, TaskState::kQueued);
  EXPECT_THAT(log_, ::testing::ElementsAre("Failed to put back the GPUs of task 't1', and will try again: "
                                           "nvidia-smi does not answer"));
  engine_->stop({}, "t1", false, [](const auto& stopped) { EXPECT_TRUE(stopped); });
  run();
  for (int i = 0; i < 3; ++i) wait_and_run();
  EXPECT_EQ(engine_->task({}, "t1")->state, TaskState::kStopping);
  EXPECT_EQ(engine_->task({}, "t2")->state, TaskState::kQueued);
  world_.clean_error.reset();
  wait_and_run();
  EXPECT_EQ(engine_->task({}, "t1")->state, TaskState::kKilled);
  EXPECT_EQ(engine_->task({}, "t2")->state, TaskState::kStarting);
}

TEST_F(LocalMpsTest, ADaemonKilledMeanwhileFindsThemHeldToo) {
  begin(1);
  world_.launch_error = Error{ErrorKind::kUnavailable, "its GPUs cannot be shared by MPS", "", ""};
  world_.clean_error = Error{ErrorKind::kTimeout, "nvidia-smi does not answer", "", ""};
  ASSERT_TRUE(submit_member());
  begin(1);
  world_.clean_error.reset();
  wait_and_run();
  EXPECT_EQ(engine_->task({}, "t1")->state, TaskState::kFailed) << "it was tried again, and failed again";
  EXPECT_THAT(engine_->task({}, "t1")->reason, HasSubstr("cannot be shared by MPS"));
}

TEST_F(LocalMpsTest, WhoLosesHisServerIsToldAndNobodyElse) {
  begin(2);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(submit_member());
  ASSERT_TRUE(submit_member(ShareBy::kMps, "other"));
  for (const char* id : {"t1", "t3"}) engine_->watcher().started(id, container::Running{});
  run();
  engine_->mps_restarted("group-0-train");
  run();
  std::vector<std::string> hear;
  for (const auto& event : told())
    if (event.kind == "mps_restarted") hear.push_back(event.task_id);
  EXPECT_THAT(hear, ::testing::ElementsAre("t1"));
}

TEST_F(LocalMpsTest, AClusterHasItByClaims) {
  placed_by_others_ = true;
  begin(0);
  EXPECT_THAT(to_string(submit_member().error()), HasSubstr("MPS is not had by tasks that a cluster places"));
}

}  // namespace
}  // namespace drover::engine

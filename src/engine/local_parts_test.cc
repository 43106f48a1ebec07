// The engine and parts of GPUs in MIG mode.

#include <gmock/gmock.h>

#include "engine/testing/local_fixture.h"
#include "placement/testing/parts.h"

namespace drover::engine {
namespace {

using control::TaskState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LocalPartsTest : public testing::LocalEngineTest {
 protected:
  void begin_with_mig() {
    begin(2);
    engine_->set_machine(placement::testing::with_mig(node(2), {1}));
    run();
  }
  Result<control::TaskRecord> submit_part(const std::string& profile, int count = 1) {
    workload::TaskRequest request;
    request.task.command = {"true"};
    const auto part = placement::testing::part_request(profile, count);
    request.task.resources.gpus = part.gpus;
    request.task.resources.part = part.part;
    request.task.resources.share = part.share;
    auto record = submit(request);
    run();
    return record;
  }
  void started(const std::string& id, std::vector<std::string> parts) {
    engine_->watcher().started(id, {.pid = 7, .started_at = now_, .parts = std::move(parts)});
    run();
  }
};

TEST_F(LocalPartsTest, AreMadeAtLaunchAndKnownByTheirUuidsThen) {
  begin_with_mig();
  ASSERT_TRUE(submit_part("3g.20gb"));
  ASSERT_EQ(world_.asked.size(), 1U);
  EXPECT_THAT(world_.asked[0].parts, ElementsAre(gpu::MigPart{"GPU-1", 9, {4, 4}}));
  EXPECT_TRUE(world_.asked[0].gpu_devices.empty()) << "whoever makes the part tells its nodes";
  EXPECT_TRUE(world_.asked[0].gpu_shares.empty()) << "it sees all that it has";
  started("t1", {"MIG-1"});
  EXPECT_EQ(engine_->task({}, "t1")->gpus.at(0).mig->uuid, "MIG-1");
  const auto kept = engine_->task({}, "t1")->gpus;
  begin_with_mig();
  ASSERT_TRUE(engine_->task({}, "t1"));
  EXPECT_EQ(engine_->task({}, "t1")->gpus, kept) << "after kill -9";
  EXPECT_EQ(world_.launches["t1"], 1);
  ASSERT_TRUE(submit_part("3g.20gb"));
  EXPECT_EQ(world_.asked.back().parts.at(0).placement.start, 0U) << "beside the first";
  EXPECT_EQ(submit_part("3g.20gb")->state, TaskState::kQueued);
  end("t1", 0);
  EXPECT_EQ(world_.asked.back().parts, world_.asked.front().parts);
}

TEST_F(LocalPartsTest, WaitWithAReasonAndAreRefusedWhereTheyCannotBe) {
  begin_with_mig();
  ASSERT_TRUE(submit_part("7g.40gb"));
  const auto waits = submit_part("1g.5gb");
  EXPECT_THAT(engine_->task({}, "t2")->reason, HasSubstr("GPU 1 has 7g.40gb"));
  EXPECT_EQ(waits->state, TaskState::kQueued);
  const auto refused = submit_part("1g.10gb");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().path, "/members/0/part");
  EXPECT_THAT(refused.error().message, HasSubstr("no GPU with the MIG profile 1g.10gb"));
  placed_by_others_ = true;
  begin(0);
  EXPECT_THAT(to_string(submit_part("1g.5gb").error()), HasSubstr("that a cluster places"));
}

TEST_F(LocalPartsTest, AShareThatTheHardwareIsToHoldIsAPart) {
  begin_with_mig();
  const auto submit_share = [&](const workload::Share& share) {
    auto record = submit_with([&](workload::Task& task) {
      task.resources.gpus = {{1, {}}};
      task.resources.share = share;
      task.resources.share_by = workload::ShareBy::kMig;
    });
    run();
    return record;
  };
  const auto half = submit_share({500, 0});
  ASSERT_TRUE(half) << to_string(half.error());
  EXPECT_EQ(half->task.resources.part, "4g.20gb");
  EXPECT_EQ(half->task.resources.share, workload::share_of_part("4g.20gb"));
  EXPECT_EQ(half->task.resources.share_by, workload::ShareBy::kMig);
  EXPECT_EQ(world_.asked.back().parts.size(), 1U);
  EXPECT_EQ(submit_share({1000, 1ULL << 30})->task.resources.part, "1g.5gb");
  const auto refused = submit_share({1000, 50ULL << 30});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "no profile of the GPUs here has 50 GiB: the largest is 7g.40gb");
  EXPECT_EQ(refused.error().path, "/share_by");
  begin_with_mig();
  EXPECT_EQ(engine_->task({}, half->task.id)->task, half->task) << "after kill -9";
  placed_by_others_ = true;
  begin(0);
  EXPECT_THAT(to_string(submit_share({500, 0}).error()), HasSubstr("that a cluster places"));
}

TEST_F(LocalPartsTest, OneThatCannotBeMadeFailsItsTaskAndIsFreeAgain) {
  begin_with_mig();
  world_.launch_error = Error{ErrorKind::kConflict, "somebody has that place", "", ""};
  ASSERT_TRUE(submit_part("7g.40gb"));
  EXPECT_EQ(engine_->task({}, "t1")->state, TaskState::kFailed);
  EXPECT_THAT(world_.cleaned, ::testing::Contains("t1")) << "what was made of it goes";
  world_.launch_error.reset();
  ASSERT_TRUE(submit_part("7g.40gb"));
  EXPECT_EQ(engine_->task({}, "t2")->state, TaskState::kStarting);
}

TEST_F(LocalPartsTest, OneThatCannotBeDestroyedIsItsTasksUntilItIs) {
  begin_with_mig();
  world_.launch_error = Error{ErrorKind::kConflict, "no instance can be made", "", ""};
  world_.clean_error = Error{ErrorKind::kUnavailable, "the driver does not answer", "", ""};
  ASSERT_TRUE(submit_part("7g.40gb"));
  world_.launch_error.reset();
  ASSERT_TRUE(submit_part("7g.40gb"));
  EXPECT_EQ(engine_->task({}, "t1")->state, TaskState::kStarting);
  EXPECT_EQ(engine_->task({}, "t2")->state, TaskState::kQueued);
  world_.clean_error.reset();
  now_ += std::chrono::minutes(1);
  engine_->tick();
  run();
  EXPECT_EQ(engine_->task({}, "t1")->state, TaskState::kFailed);
  EXPECT_EQ(engine_->task({}, "t2")->state, TaskState::kStarting);
}

}  // namespace
}  // namespace drover::engine

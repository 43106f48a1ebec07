// What the engine has hold tasks to their shares of GPUs.

#include <gmock/gmock.h>

#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using control::TaskState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using workload::ShareBy;

constexpr std::uint64_t kWanted = 2ULL << 30;
const Error kCannot{ErrorKind::kUnsupported, "that is not to be had", "", ""};

class LocalShareByTest : public testing::LocalEngineTest {
 protected:
  /// The last task that was submitted.
  Result<control::TaskRecord> submit_share(ShareBy by, std::uint64_t bytes = kWanted) {
    auto record = submit_with([&](workload::Task& task) {
      task.resources.gpus = {{1, {}}};
      task.resources.share.memory_bytes = bytes;
      task.resources.share_by = by;
    });
    run();
    if (!record) return record;
    return engine_->task({}, record->task.id);
  }
  bool is_limited() const { return static_cast<bool>(world_.asked.back().limit_memory); }
  bool is_guarded() const { return !world_.asked.back().limits.empty(); }
};

TEST_F(LocalShareByTest, TheStrongestThatThereIsIsTakenWhenNothingIsSaid) {
  begin(1);
  ASSERT_TRUE(submit_share(ShareBy::kAuto));
  EXPECT_TRUE(is_limited());
  EXPECT_TRUE(is_guarded()) << "which limits time too";
  ASSERT_TRUE(world_.asked.back().limit_memory("/group"));
  EXPECT_THAT(world_.kernel_limits, ElementsAre(share::KernelLimit{"GPU-0", kWanted}));
  world_.no_limits = kCannot;
  ASSERT_TRUE(submit_share(ShareBy::kAuto));
  EXPECT_FALSE(is_limited());
  EXPECT_TRUE(is_guarded());
  world_.no_guard = kCannot;
  ASSERT_TRUE(submit_share(ShareBy::kAuto));
  EXPECT_FALSE(is_limited());
  EXPECT_FALSE(is_guarded()) << "it is counted";
}

TEST_F(LocalShareByTest, WhatIsInsistedOnIsHadOrTheTaskFails) {
  begin(1);
  world_.no_guard = kCannot;
  EXPECT_EQ(submit_share(ShareBy::kKernel)->state, TaskState::kStarting);
  EXPECT_TRUE(is_limited());
  EXPECT_FALSE(is_guarded()) << "nobody insisted on that";
  const auto unguarded = submit_share(ShareBy::kLimits);
  EXPECT_EQ(unguarded->state, TaskState::kFailed);
  EXPECT_THAT(unguarded->reason, HasSubstr(kCannot.message));
  world_.no_guard.reset();
  world_.no_limits = kCannot;
  EXPECT_EQ(submit_share(ShareBy::kLimits)->state, TaskState::kStarting);
  EXPECT_FALSE(is_limited());
  EXPECT_TRUE(is_guarded());
  const auto unlimited = submit_share(ShareBy::kKernel);
  EXPECT_EQ(unlimited->state, TaskState::kFailed);
  EXPECT_THAT(unlimited->reason, HasSubstr(kCannot.message));
}

TEST_F(LocalShareByTest, NothingHoldsWhomNothingIsToHold) {
  begin(1);
  ASSERT_TRUE(submit_share(ShareBy::kNone));
  EXPECT_FALSE(is_limited());
  EXPECT_FALSE(is_guarded());
}

TEST_F(LocalShareByTest, AShareThatIsTooSmallForTheGuardIsTheDriversAlone) {
  begin(1);
  ASSERT_TRUE(submit_share(ShareBy::kAuto, 512ULL << 20));
  EXPECT_TRUE(is_limited());
  EXPECT_FALSE(is_guarded());
}

}  // namespace
}  // namespace drover::engine

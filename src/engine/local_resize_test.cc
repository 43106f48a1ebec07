// Another share of its GPUs for a task that runs: what is asked for is kept first, and what holds the task to
// it follows, also when the daemon is killed in between.

#include <gmock/gmock.h>

#include "engine/testing/local_fixture.h"
#include "gpu/share_tier.h"

namespace drover::engine {
namespace {

using share::KernelLimit;
using share::Limit;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kGib = 1ULL << 30;
const Caller kMallory{.user = {.uid = 1001, .name = "mallory"}};

class LocalResizeTest : public testing::LocalEngineTest {
 protected:
  void begin_watched() {
    engine_.reset();
    work_.clear();
    auto with_watch = ports();
    with_watch.watch_shares = [this](SharedGpus shared) { shared_ = std::move(shared); };
    ASSERT_TRUE(open(node(1), std::move(with_watch), std::make_unique<testing::FakeContainerizer>(world_)));
    run();
  }
  std::string running(std::uint64_t gib, std::string_view tier) {
    const auto id = submit_with([&](workload::Task& task) {
                      task.resources.gpus = {{1, {}}};
                      task.resources.share.memory_bytes = gib * kGib;
                    })->task.id;
    run();
    started(id, tier);
    return id;
  }
  void started(const std::string& id, std::string_view tier) {
    engine_->watcher().started(id, {.pid = 100, .started_at = now_, .tier = std::string(tier)});
    run();
  }
  Result<control::TaskRecord> resize(const std::string& id, std::uint64_t gib, const Caller& caller = {}) {
    return transact([&] { return engine_->resize(caller, id, {1000, gib * kGib}); });
  }
  std::vector<KernelLimit> driver_limits(const std::string& id) {
    return world_.changed_limits["/groups/" + id];
  }

  SharedGpus shared_;
};

TEST_F(LocalResizeTest, WhoWatchesHearsOfItAtOnce) {
  begin_watched();
  const auto task = running(12, gpu::kGuarded);
  EXPECT_THAT(shared_.guarded.at(task).limits, ElementsAre(Limit{"GPU-0", 12 * kGib, 750}));
  const auto record = resize(task, 4);
  ASSERT_TRUE(record) << to_string(record.error());
  EXPECT_THAT(record->gpus, ElementsAre(placement::Grant{"GPU-0", 250, 4 * kGib}));
  EXPECT_THAT(shared_.guarded.at(task).limits, ElementsAre(Limit{"GPU-0", 4 * kGib, 250}));
  ASSERT_EQ(shared_.allowances.size(), 1U);
  EXPECT_EQ(shared_.allowances[0].bytes, 4 * kGib);
  EXPECT_EQ(shared_.allowances[0].earlier, 12 * kGib);
  run();
  EXPECT_EQ(world_.changes, 0) << "the driver limits nobody here";
}

/// It is in the journal, and the pages say what they said: the next daemon has them agree.
TEST_F(LocalResizeTest, ADaemonThatIsKilledLeavesItToTheNext) {
  begin_watched();
  const auto guarded = running(4, gpu::kGuarded);
  const auto hard = running(4, gpu::kHard);
  ASSERT_TRUE(resize(guarded, 8));
  ASSERT_TRUE(resize(hard, 2));
  EXPECT_THAT(driver_limits(hard), ElementsAre()) << "what is to be done on the pool was not";
  shared_ = {};
  begin_watched();
  EXPECT_EQ(engine_->task({}, guarded)->gpus[0].memory_bytes, 8 * kGib) << "its folder says what it was";
  EXPECT_THAT(shared_.guarded.at(guarded).limits, ElementsAre(Limit{"GPU-0", 8 * kGib, 500}));
  EXPECT_THAT(shared_.guarded.at(hard).limits, ElementsAre(Limit{"GPU-0", 2 * kGib, 125}));
  EXPECT_THAT(driver_limits(hard), ElementsAre(KernelLimit{"GPU-0", 2 * kGib}));
}

/// Killed before it was kept: nothing of it has happened, and it can be asked for again.
TEST_F(LocalResizeTest, WhatIsNotKeptHasNotHappened) {
  begin_watched();
  const auto task = running(4, gpu::kGuarded);
  disk_.die();
  EXPECT_FALSE(resize(task, 8));
  EXPECT_THAT(shared_.guarded.at(task).limits, ElementsAre(Limit{"GPU-0", 4 * kGib, 250}));
  disk_.recover();
  begin_watched();
  EXPECT_THAT(shared_.guarded.at(task).limits, ElementsAre(Limit{"GPU-0", 4 * kGib, 250}));
  EXPECT_TRUE(resize(task, 8));
}

TEST_F(LocalResizeTest, TheDriverIsAskedAgainUntilItHasSetTheLimit) {
  begin_watched();
  const auto task = running(4, gpu::kHard);
  world_.no_change = Error{ErrorKind::kUnavailable, "the driver hangs", "", ""};
  ASSERT_TRUE(resize(task, 8));
  run();
  EXPECT_THAT(log_, ElementsAre(HasSubstr("Failed to set the driver's limit of")));
  world_.no_change.reset();
  now_ += std::chrono::minutes(1);
  engine_->tick();
  run();
  EXPECT_THAT(driver_limits(task), ElementsAre(KernelLimit{"GPU-0", 8 * kGib}));
}

TEST_F(LocalResizeTest, ManyChangesAreFewForTheDriver) {
  begin_watched();
  const auto task = running(4, gpu::kHard);
  for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(resize(task, 5 + i % 2));
  run();
  EXPECT_EQ(world_.changes, 2) << "the first, and the last";
  EXPECT_THAT(driver_limits(task), ElementsAre(KernelLimit{"GPU-0", 6 * kGib}));
}

TEST_F(LocalResizeTest, OfTwoWhoGrowIntoTheSameRoomOneDoes) {
  begin_watched();
  const auto one = running(4, gpu::kGuarded), other = running(4, gpu::kGuarded);
  const auto grown = transact([&] {
    const auto first = engine_->resize({}, one, {1000, 10 * kGib});
    const auto second = engine_->resize({}, other, {1000, 10 * kGib});
    EXPECT_TRUE(first);
    EXPECT_FALSE(second);
    return first;
  });
  EXPECT_TRUE(grown);
  EXPECT_FALSE(resize(other, 7));
  EXPECT_TRUE(resize(other, 6));
}

TEST_F(LocalResizeTest, OthersTasksAreNotThere) {
  begin_watched();
  const auto task = running(4, gpu::kGuarded);
  EXPECT_EQ(resize(task, 2, kMallory).error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(engine_->task({}, task)->gpus[0].memory_bytes, 4 * kGib);
}

}  // namespace
}  // namespace drover::engine

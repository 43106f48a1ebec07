#include "engine/dry_run.h"

#include <gmock/gmock.h>

#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using ::testing::IsEmpty;

class DryRunTest : public testing::LocalEngineTest {
 protected:
  void SetUp() override {
    LocalEngineTest::SetUp();
    auto all = ports();
    all.journal = [this](Work work) { writes_.push_back(std::move(work)); };
    ASSERT_TRUE(open(node(4), std::move(all), std::make_unique<testing::FakeContainerizer>(world_)));
    for (run(); !writes_.empty(); run()) {  // the events are counted
      writes_.front()();
      writes_.pop_front();
    }
  }
  void TearDown() override {
    writes_.clear();
    LocalEngineTest::TearDown();
  }

  /// What is refused, or "".
  static std::string submit(Decisions& daemon, int gpus, const std::string& queue = "default") {
    workload::TaskRequest request;
    request.task.name = "task";
    request.task.command = {"true"};
    request.task.queue = queue;
    request.task.resources.gpus = {{.count = gpus, .filter = {}}};
    std::string refusal = "no answer came";
    daemon.transact(
        [&] {
          const auto made = daemon.submit({}, request);
          refusal = made ? "" : to_string(made.error());
        },
        [](const Status& kept) { EXPECT_TRUE(kept); });
    return refusal;
  }

  std::deque<Work> writes_;
};

TEST_F(DryRunTest, RefusesWhatTheDaemonWould) {
  DryRun dry(*engine_);
  EXPECT_EQ(submit(dry, 4), "");
  const auto refusal = submit(dry, 5);
  EXPECT_NE(refusal, "");
  EXPECT_EQ(submit(*engine_, 5), refusal);
  EXPECT_NE(submit(dry, 1, "nowhere/there"), "");
}

TEST_F(DryRunTest, KeepsWhatWasDecidedForWhatFollows) {
  DryRun dry(*engine_);
  EXPECT_EQ(submit(dry, 1), "");
  EXPECT_EQ(dry.state().tasks.size(), 1u);
  EXPECT_EQ(submit(dry, 1), "");
  EXPECT_EQ(dry.state().tasks.size(), 2u);
  EXPECT_EQ(DryRun(*engine_).state().tasks.size(), 0u) << "another one begins anew";
}

TEST_F(DryRunTest, ChangesNothing) {
  std::vector<std::string> notified;
  const auto watch = engine_->watch([&](const control::Notice&) { notified.emplace_back("something"); });
  const auto free = engine_->node().gpus_free;
  {
    DryRun dry(*engine_);
    EXPECT_EQ(submit(dry, 4), "");
    EXPECT_TRUE(engine_->state().tasks.empty()) << "nobody else sees it meanwhile";
  }
  run();
  EXPECT_THAT(writes_, IsEmpty());
  EXPECT_THAT(notified, IsEmpty());
  EXPECT_THAT(world_.launches, IsEmpty());
  EXPECT_TRUE(engine_->state().tasks.empty());
  EXPECT_EQ(engine_->node().gpus_free, free);
  EXPECT_EQ(submit(*engine_, 4), "") << "and the daemon goes on";
  run();
  EXPECT_EQ(writes_.size(), 1u);
}

}  // namespace
}  // namespace drover::engine

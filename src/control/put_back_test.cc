// Tasks whose GPU turned out to be in use when they were about to be started.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/testing/machine.h"

namespace drover::control {
namespace {

using namespace testing;  // NOLINT: the machine
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Error kInUse{ErrorKind::kUnavailable, "GPU GPU-0: process 7 (job) has it open, and is no task's"};

placement::Node with_unhealthy(int gpus, std::size_t unhealthy) {
  auto node = node_with(gpus);
  node.inventory.devices[unhealthy].unhealthy = "process 7 (job) has it open, and is no task's";
  return node;
}

TEST(PutBack, TheTaskWaitsUntilTheGpuIsFit) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(task("t", 1)));
  ASSERT_TRUE(machine.on(event::NodeChanged{with_unhealthy(1, 0)}));
  ASSERT_TRUE(machine.on(event::PutBack{"t", kInUse}));
  EXPECT_EQ(machine.at("t"), TaskState::kQueued);
  EXPECT_EQ(machine.record("t").preemptions, 0) << "it never ran";
  EXPECT_THAT(machine.record("t").gpus, IsEmpty());
  EXPECT_THAT(machine.asked<action::Launch>(), IsEmpty());
  ASSERT_TRUE(machine.on(event::NodeChanged{node_with(1)}));
  EXPECT_THAT(machine.asked<action::Launch>(), ElementsAre("t"));
}

TEST(PutBack, TheTaskGetsAnotherGpuThatIsFree) {
  Machine machine(2);
  ASSERT_TRUE(machine.submit(task("t", 1)));
  const auto first = uuids_of(machine.record("t"));
  ASSERT_TRUE(machine.on(event::NodeChanged{with_unhealthy(2, first.front() == "GPU-0" ? 0 : 1)}));
  ASSERT_TRUE(machine.on(event::PutBack{"t", kInUse}));
  EXPECT_THAT(machine.asked<action::Launch>(), ElementsAre("t"));
  EXPECT_NE(uuids_of(machine.record("t")), first);
}

TEST(PutBack, WhoWasAskedToStopDoesNotWaitAgain) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(task("t", 1)));
  ASSERT_TRUE(machine.on(event::StopRequested{"t"}));
  ASSERT_TRUE(machine.on(event::PutBack{"t", kInUse}));
  EXPECT_EQ(machine.at("t"), TaskState::kKilled);
}

TEST(PutBack, NewsOfAnotherAttemptOrOfOneThatRanPutNothingBack) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(task("t", 1)));
  ASSERT_TRUE(machine.on(event::PutBack{"t", kInUse, 1}));
  EXPECT_EQ(machine.at("t"), TaskState::kStarting);
  ASSERT_TRUE(machine.on(event::Ended{"t", exited(0)}));
  ASSERT_TRUE(machine.on(event::PutBack{"t", kInUse, 0}));
  EXPECT_EQ(machine.at("t"), TaskState::kFinished);
}

}  // namespace
}  // namespace drover::control

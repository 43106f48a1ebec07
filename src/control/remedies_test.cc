#include "control/remedies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/testing/machine.h"

namespace drover::control {
namespace {

using namespace testing;  // NOLINT: the machine
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Remedies, AreWhatWouldStartAtOnce) {
  Machine machine(4);
  ASSERT_TRUE(machine.on(event::Submitted{{task("holder", 1)}}));
  EXPECT_THAT(remedies(machine.state, {task("new", 4)}, kNow), ElementsAre("ask for 3 GPUs"));
  ASSERT_TRUE(machine.on(event::Submitted{gang("gang", 4, 1)}));
  EXPECT_THAT(remedies(machine.state, gang("gang", 4, 1), kNow), ElementsAre("make it a gang of 3"));
}

TEST(Remedies, ForATaskThatWaitsAreToldAsIfItWereAskedForAnew) {
  Machine machine(2);
  ASSERT_TRUE(machine.on(event::Submitted{{task("holder", 1)}}));
  ASSERT_TRUE(machine.on(event::Submitted{{task("waiting", 2)}}));
  const auto before = machine.state.queue;
  EXPECT_THAT(remedies(machine.state, {task("waiting", 2)}, kNow), ElementsAre("ask for 1 GPU"));
  EXPECT_EQ(machine.state.queue, before);
  // Behind another that waits for the same, to ask for less does not help.
  ASSERT_TRUE(machine.on(event::Submitted{{task("second", 2)}}));
  EXPECT_THAT(remedies(machine.state, {task("second", 2)}, kNow), IsEmpty());
}

TEST(Remedies, AreNoneWhenNothingHelps) {
  Machine machine(1);
  ASSERT_TRUE(machine.on(event::Submitted{{task("holder", 1)}}));
  EXPECT_THAT(remedies(machine.state, {task("new", 1)}, kNow), IsEmpty());
  EXPECT_THAT(remedies(machine.state, {}, kNow), IsEmpty());
}

}  // namespace
}  // namespace drover::control

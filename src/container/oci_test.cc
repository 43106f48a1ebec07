#include "container/oci.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "container/oci_fixture.h"

namespace drover::container {
namespace {

using ::testing::HasSubstr;

class OciTest : public OciFixture {};

TEST_F(OciTest, RunsACommandToItsEnd) {
  const auto ending = run(launch_of("true", {"/bin/true"}));
  EXPECT_EQ(ending.exit_status, 0);
  EXPECT_FALSE(ending.stopped);
  EXPECT_FALSE(ending.lost);
  EXPECT_EQ(ending.message, "");
}

TEST_F(OciTest, KeepsOutputAndExitStatus) {
  const auto launch = launch_of("output", {"/bin/sh", "-c", "echo to-out; echo to-err >&2; exit 3"});
  EXPECT_EQ(run(launch).exit_status, 3);
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), "to-out\n");
  EXPECT_EQ(sandbox_file(launch.task.id, "stderr"), "to-err\n");
}

}  // namespace
}  // namespace drover::container

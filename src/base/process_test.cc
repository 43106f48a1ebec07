#include "base/process.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

Command command(std::vector<std::string> arguments) {
  Command result;
  result.arguments = std::move(arguments);
  result.environment = minimal_environment();
  return result;
}

TEST(RunCommand, PassesInputAndCollectsBothOutputs) {
  auto cat = command({"sh", "-c", "cat; echo oops >&2; exit 3"});
  cat.input = std::string(300'000, 'x');
  const auto done = run_command(cat);
  ASSERT_TRUE(done) << to_string(done.error());
  EXPECT_EQ(done->exit_status, 3);
  EXPECT_EQ(done->output, cat.input);
  EXPECT_EQ(done->errors, "oops\n");
}

TEST(RunCommand, ChildrenHaveTheUsualUmaskAndOursStays) {
  const auto before = ::umask(077);
  const auto done = run_command(command({"sh", "-c", "umask"}));
  const auto ours = ::umask(before);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->output, "0022\n");
  EXPECT_EQ(ours, 077u);
}

TEST(RunCommand, DropsOutputOverTheLimitAndGoesOn) {
  auto loud = command({"head", "-c", "1000000", "/dev/zero"});
  loud.output_limit = 1000;
  const auto done = run_command(loud);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->exit_status, 0);
  EXPECT_EQ(done->output.size(), 1000u);
}

TEST(RunCommand, EndsWhatTakesTooLong) {
  auto slow = command({"sleep", "60"});
  slow.timeout = 50ms;
  EXPECT_EQ(run_command(slow).error().kind, ErrorKind::kTimeout);
}

TEST(RunCommand, AProgramThatClosedItsOutputsHasNoMoreTime) {
  auto silent = command({"sh", "-c", "exec >&- 2>&-; exec sleep 100"});
  silent.timeout = std::chrono::milliseconds(300);
  const auto ran = run_command(silent);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().kind, ErrorKind::kTimeout);
}

TEST(RunCommand, TellsSignalsAndMissingPrograms) {
  EXPECT_EQ(run_command(command({"sh", "-c", "kill -9 $$"}))->exit_status, 137);
  const auto missing = run_command(command({"no-such-program-anywhere"}));
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(missing.error().hint, "install 'no-such-program-anywhere'");
}

TEST(RunCommand, GivesNothingOfOurEnvironment) {
  ::setenv("DROVER_TEST_SECRET", "secret", 1);
  Command bare;
  bare.arguments = {"/usr/bin/env"};
  bare.environment = {{"A", "1"}};
  EXPECT_EQ(run_command(bare)->output, "A=1\n");
}

}  // namespace
}  // namespace drover

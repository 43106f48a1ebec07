#include "kube/client/remote_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::kube {
namespace {

using ::testing::HasSubstr;

TEST(RemoteCommand, EndsAsTheServerSays) {
  EXPECT_EQ(read_exit_status(R"({"status":"Success"})").value(), 0);
  EXPECT_EQ(
      read_exit_status(R"({"status":"Failure","reason":"NonZeroExitCode","message":"command terminated with…",
                                 "details":{"causes":[{"reason":"ExitCode","message":"42"}]}})")
          .value(),
      42);
}

TEST(RemoteCommand, OneThatCouldNotBeRunSaysWhy) {
  const auto failure = [](const std::string& message) {
    return read_exit_status(R"({"status":"Failure","reason":"InternalError","message":")" + message +
                            R"("})");
  };
  EXPECT_EQ(failure("exec: nope: executable file not found in $PATH").value(), 127);
  EXPECT_EQ(failure("exec: /etc/passwd: permission denied").value(), 126);
  const auto other = failure("the container is gone");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("the container is gone"));
  EXPECT_FALSE(read_exit_status("{"));
  EXPECT_FALSE(read_exit_status(R"({"status":"Failure","reason":"NonZeroExitCode"})"));
}

TEST(RemoteCommand, GoesOnlyWhereTheServerIsVerified) {
  const auto plain = RemoteCommand::start({.url = "http://127.0.0.1:1", .source = "a test"}, {.pod = "p"});
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().kind, ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace drover::kube

#include "container/runtime_failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace drover::container {
namespace {

using ::testing::EndsWith;

TEST(RuntimeFailure, TheLogsLastErrorIsTheLastWord) {
  EXPECT_EQ(last_word("{\"level\":\"warning\",\"msg\":\"w\"}\n{\"level\":\"error\",\"msg\":\"first\"}\n"
                      "{\"level\":\"error\",\"msg\":\"second\"}\nnot json\n",
                      "ignored"),
            "second");
  EXPECT_EQ(last_word("", "one\ntwo\n\n"), "two");
  EXPECT_EQ(last_word("", ""), "");
}

TEST(RuntimeFailure, AMissingCommandIsTheTasksMistake) {
  const auto missing = explain_runtime_failure("/usr/sbin/runc",
                                               "runc run failed: unable to start container process: exec: "
                                               "\"nope\": executable file not found in $PATH");
  EXPECT_EQ(missing.kind, ErrorKind::kNotFound);
  EXPECT_EQ(missing.message, "There is no command 'nope' in the container");
  EXPECT_EQ(exit_status_of(missing), 127);
  const auto crun =
      explain_runtime_failure("crun", "executable file `nope` not found in $PATH: No such file or directory");
  EXPECT_EQ(crun.message, missing.message);
  const auto refused = explain_runtime_failure(
      "runc", "runc run failed: unable to start container process: exec: \"/etc/passwd\": permission denied");
  EXPECT_EQ(refused.kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(exit_status_of(refused), 126);
}

TEST(RuntimeFailure, WhatOnlyAShellUnderstandsIsToldApart) {
  EXPECT_EQ(missing_command("python4").hint, "check its spelling, the PATH and the image");
  EXPECT_EQ(missing_command("cd").hint, "'cd' is a word of shells: run sh -c 'LINE'");
  for (const auto* line : {"sleep 1; echo hi", "python3 train.py", "a|b", "$HOME/x"})
    EXPECT_THAT(missing_command(line).hint,
                ::testing::StartsWith("a line for a shell is run as sh -c 'LINE'"))
        << line;
}

TEST(RuntimeFailure, AnythingElseIsSaidInTheRuntimesWords) {
  const auto other = explain_runtime_failure("/usr/bin/crun", "cgroups in hybrid mode not supported");
  EXPECT_EQ(other.kind, ErrorKind::kUnavailable);
  EXPECT_EQ(other.message, "'crun' could not start the container: cgroups in hybrid mode not supported");
  EXPECT_EQ(exit_status_of(other), 125);
}

TEST(RuntimeFailure, OfOneThatSaidNothingItIsToldHowItEnded) {
  const auto message = [](std::optional<int> status) {
    return explain_runtime_failure("crun", "", status).message;
  };
  EXPECT_THAT(message(std::nullopt), EndsWith("the container: it did not say why"));
  EXPECT_THAT(message(SIGKILL), EndsWith("the container: it was ended by signal 9 (Killed)"));
  EXPECT_THAT(message(3 << 8), EndsWith("the container: it ended with status 3 and did not say why"));
}

}  // namespace
}  // namespace drover::container

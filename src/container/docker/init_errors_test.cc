#include "container/docker/init_errors.h"

#include <gtest/gtest.h>

namespace drover::container::docker {
namespace {

constexpr const char* kFolder = "drover: Cannot enter the working folder '/v/x': Permission denied\n";
constexpr const char* kCommand = "drover: There is no command 'x' in the container\n";

TEST(InitErrors, ASentenceAloneTellsWhyNothingStarted) {
  InitErrors errors;
  for (const char* c = kFolder; *c != '\0'; ++c) EXPECT_EQ(errors.pass(1, std::string_view(c, 1)), "");
  const auto failure = errors.failure(126);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message, "Cannot enter the working folder '/v/x': Permission denied");
  EXPECT_EQ(failure->kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(errors.rest(), kFolder);
  EXPECT_EQ(errors.rest(), "");
}

TEST(InitErrors, ACommandThatIsNotThereIsNamed) {
  InitErrors errors;
  EXPECT_EQ(errors.pass(1, kCommand), "");
  EXPECT_EQ(errors.failure(127)->message, "There is no command 'x' in the container");
  EXPECT_EQ(errors.failure(127)->kind, ErrorKind::kNotFound);
}

TEST(InitErrors, WhatACommandWritesIsPassedOnAtOnce) {
  InitErrors errors;
  EXPECT_EQ(errors.pass(0, "drover: There is"), "drover: There is");
  EXPECT_EQ(errors.pass(1, "drover: "), "") << "not yet known";
  EXPECT_EQ(errors.pass(1, "hello"), "drover: hello");
  EXPECT_EQ(errors.pass(1, kCommand), kCommand) << "too late for the init";
  EXPECT_FALSE(errors.failure(127));
}

TEST(InitErrors, MoreThanOneLineIsACommandS) {
  InitErrors errors;
  const auto two = std::string(kCommand) + "x\n";
  EXPECT_EQ(errors.pass(1, two), two);
  EXPECT_FALSE(errors.failure(127));
}

TEST(InitErrors, AnyOtherExitStatusIsTheCommandSOwn) {
  InitErrors errors;
  EXPECT_EQ(errors.pass(1, kCommand), "");
  EXPECT_FALSE(errors.failure(0));
  EXPECT_FALSE(errors.failure(3));
  EXPECT_EQ(errors.rest(), kCommand);
}

TEST(InitErrors, HalfASentenceIsNone) {
  InitErrors errors;
  EXPECT_EQ(errors.pass(1, "drover: There is no command 'x"), "");
  EXPECT_FALSE(errors.failure(127));
  EXPECT_FALSE(InitErrors().failure(127));
}

}  // namespace
}  // namespace drover::container::docker

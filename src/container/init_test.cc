#include "container/init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace drover::container {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(InitArguments, TheFolderIsFoundAgain) {
  const auto words = init_arguments("/work", {"run", "me"});
  EXPECT_THAT(words, ElementsAre(kInitInside, "--report", "3", "/work", "run", "me"));
  EXPECT_EQ(folder_of(words), "/work");
  EXPECT_EQ(folder_of({"sh", "-c", "true", "x", "y"}), std::nullopt);
}

TEST(InitReportTest, TellsOfTheStartAndOfTheSignal) {
  InitReport report("/work", "run");
  report.append("runn");
  EXPECT_FALSE(report.running());
  report.append("ing\nsig");
  EXPECT_TRUE(report.running());
  EXPECT_EQ(report.signal(), std::nullopt);
  report.append("nal 15\n");
  EXPECT_EQ(report.signal(), 15);
  EXPECT_FALSE(report.failure());
}

TEST(InitReportTest, PutsFailuresIntoWords) {
  InitReport folder("/closed", "run");
  folder.append("folder 13\n");
  ASSERT_TRUE(folder.failure());
  EXPECT_EQ(folder.failure()->kind, ErrorKind::kPermissionDenied);
  EXPECT_THAT(folder.failure()->message, HasSubstr("'/closed': Permission denied"));
  InitReport command("/", "nosuch");
  command.append("command 2\n");
  ASSERT_TRUE(command.failure());
  EXPECT_EQ(command.failure()->kind, ErrorKind::kNotFound);
  EXPECT_THAT(command.failure()->message, HasSubstr("'nosuch'"));
}

TEST(InitReportTest, WhatATaskWritesAfterItsStartChangesNothing) {
  InitReport report("/", "run");
  report.append("running\nfolder 2\ncommand 2\nsignal 99999\nsignal -1\n");
  report.append(std::string(1 << 20, 'x'));
  EXPECT_TRUE(report.running());
  EXPECT_FALSE(report.failure());
  EXPECT_EQ(report.signal(), std::nullopt);
}

}  // namespace
}  // namespace drover::container

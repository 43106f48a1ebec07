#include "container/init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace drover::container {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

TEST(InitArguments, TheFolderIsFoundAgain) {
  const auto words = init_arguments("/work", {"run", "me"});
  EXPECT_THAT(words,
              ElementsAre(kInitInside, "--filter", kFilterInside, "--report", "3", "/work", "run", "me"));
  EXPECT_THAT(direct_arguments(words, {"look"}),
              Optional(ElementsAre(kInitInside, "--filter", kFilterInside, "--direct", "/work", "look")));
  EXPECT_THAT(direct_arguments({kInitInside, "--report", "3", "/work", "run"}, {"look"}),
              Optional(ElementsAre(kInitInside, "--direct", "/work", "look")))
      << "of the version before";
  const auto engines = engine_init_arguments("/work", {"run"});
  EXPECT_TRUE(can_hold(engines));
  EXPECT_FALSE(can_hold(words));
  EXPECT_THAT(direct_arguments(engines, {"look"}),
              Optional(ElementsAre(kInitInside, "--direct", "/work", "look")));
  EXPECT_THAT(direct_arguments(engines, {"look"}, true),
              Optional(ElementsAre(kInitInside, "--hold", "--direct", "/work", "look")));
  EXPECT_THAT(direct_arguments({kInitInside, "/work"}, {"look"}),
              Optional(ElementsAre(kInitInside, "--direct", "/work", "look")))
      << "of the version before";
  EXPECT_EQ(direct_arguments({"sh", "-c", "true", "x", "y"}, {"look"}), std::nullopt);
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

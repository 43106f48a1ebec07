#include "container/init.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/process.h"

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
  for (const auto input : {InitInput::kGiven, InitInput::kTerminal})
    EXPECT_EQ(direct_arguments(init_arguments("/work", {"run", "me"}, input), {"look"}),
              direct_arguments(words, {"look"}));
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

/// As the first process of a container is started: what has no handler does not reach process 1 itself.
std::string ending_in_container(const std::string& script) {
  std::string folder = std::filesystem::temp_directory_path() / "drover-init-XXXXXX";
  EXPECT_NE(::mkdtemp(folder.data()), nullptr);
  const auto program = place_init(folder);
  EXPECT_TRUE(program) << to_string(program.error());
  Command command;
  command.arguments = {"unshare", "--pid", "--fork", *program, "--report", "2", "/", "/bin/sh", "-c", script};
  command.environment = minimal_environment();
  const auto ended = run_command(command);
  EXPECT_TRUE(ended) << to_string(ended.error());
  std::filesystem::remove_all(folder);
  return fmt::format("{} {}", ended->exit_status, ended->errors);
}

TEST(InitTest, EndsAsTheCommandDoes) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes a process 1";
  EXPECT_EQ(ending_in_container("exit 7"), "7 running\n");
  EXPECT_EQ(ending_in_container("kill -TERM $$; sleep 1; exit 0"), "143 running\nsignal 15\n");
  EXPECT_EQ(ending_in_container("kill -ABRT $$; sleep 1; exit 0"), "134 running\nsignal 6\n");
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

#include "cli/line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class LineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    app_.add_option("--socket", text_, "");
    auto* run = app_.add_subcommand("run", "");
    run->add_option("--gpus", text_, "");
    run->add_option("--timeout", text_, "");
    run->add_option("--volume,-v", text_, "");
    run->add_option("--env,-e", text_, "");
    run->add_flag("--detach,-d", flag_, "");
    run->add_option("command")->type_name(kCommandType);
    auto* exec = app_.add_subcommand("exec", "");
    exec->add_option("task", text_, "")->required()->type_name("TASK");
    exec->add_flag("-i", flag_, "");
    exec->add_flag("-t", flag_, "");
    exec->add_option("command")->type_name(kCommandType);
    app_.add_subcommand("ps", "")->add_flag("--json", flag_, "");
    app_.add_subcommand("rm", "")->add_option("task", text_, "")->type_name("TASK");
    app_.add_subcommand("app", "")->add_subcommand("ls", "");
    app_.add_subcommand("serve", "")->add_option("--attribute", texts_, "");
    app_.add_subcommand("apply", "")->add_option("file", text_, "")->type_name("FILE");
  }
  Line read(const Words& words) {
    auto line = read_line(app_, words);
    EXPECT_TRUE(line) << to_string(line.error());
    return line ? *line : Line(app_);
  }
  std::string hint(const Words& words) {
    const auto line = read_line(app_, words);
    EXPECT_FALSE(line) << words.back();
    return line ? "" : line.error().hint;
  }
  CLI::App app_{"", "drover"};
  std::string text_;
  Words texts_;
  bool flag_ = false;
};

TEST_F(LineTest, TheCommandToRunBeginsAtItsFirstWord) {
  auto line = read({"--socket", "/s", "run", "--gpus", "1", "echo", "-n", "--", "--gpus", "2"});
  EXPECT_THAT(line.arguments(), ElementsAre("--socket", "/s", "run", "--gpus", "1"));
  EXPECT_THAT(line.command_to_run(), ElementsAre("echo", "-n", "--", "--gpus", "2"));
  line = read({"exec", "-it", "box", "ls", "-l"});
  EXPECT_THAT(line.arguments(), ElementsAre("exec", "-it", "box"));
  EXPECT_THAT(line.command_to_run(), ElementsAre("ls", "-l"));
  line = read({"exec", "box", "-it", "--", "ls", "--", "x"});
  EXPECT_THAT(line.arguments(), ElementsAre("exec", "box", "-it"));
  EXPECT_THAT(line.command_to_run(), ElementsAre("ls", "--", "x"));
  EXPECT_THAT(read({"run", "--", "-x"}).command_to_run(), ElementsAre("-x"));
}

TEST_F(LineTest, AFlagsValueIsNoCommand) {
  EXPECT_THAT(read({"run", "-v", "/a:/b", "ls"}).command_to_run(), ElementsAre("ls"));
  EXPECT_THAT(read({"run", "-v/a:/b", "ls"}).command_to_run(), ElementsAre("ls"));
  EXPECT_THAT(read({"run", "-de", "A=1", "ls"}).command_to_run(), ElementsAre("ls"));
  EXPECT_THAT(read({"run", "--gpus=1", "ls"}).command_to_run(), ElementsAre("ls"));
  EXPECT_THAT(read({"serve", "--attribute", "a=1", "ps", "--socket", "/x"}).arguments(),
              ElementsAre("serve", "--attribute", "a=1", "ps", "--socket", "/x"));
  EXPECT_EQ(read({"run", "--gpus", "--", "ls"}).awaits()->get_name(), "--gpus") << "the parser tells of it";
}

TEST_F(LineTest, OtherSpellingsBecomeDroversOwn) {
  EXPECT_THAT(read({"list"}).arguments(), ElementsAre("ps"));
  EXPECT_THAT(read({"delete", "x"}).arguments(), ElementsAre("rm", "x"));
  EXPECT_THAT(read({"app", "list"}).arguments(), ElementsAre("app", "ls"));
  EXPECT_THAT(read({"apps"}).arguments(), ElementsAre("app", "ls"));
  EXPECT_THAT(read({"srun", "--time=1:30:00", "hostname"}).arguments(),
              ElementsAre("run", "--timeout=1h30m"));
  EXPECT_THAT(read({"run", "--time", "90", "hostname"}).arguments(),
              ElementsAre("run", "--timeout", "1h30m"));
  EXPECT_THAT(read({"run", "--gres=gpu:a100:2"}).arguments(), ElementsAre("run", "--gpus=2xa100"));
  EXPECT_THAT(read({"run", "-G2"}).arguments(), ElementsAre("run", "--gpus=2"));
  EXPECT_THAT(read({"run", "-detach", "x"}).arguments(), ElementsAre("run", "--detach"));
  EXPECT_THAT(read({"apply", "-f", "x.yaml"}).arguments(), ElementsAre("apply", "x.yaml"));
  EXPECT_THAT(read({"apply", "--filename=x.yaml"}).arguments(), ElementsAre("apply", "x.yaml"));
  const auto removed = read({"run", "--rm", "x"});
  EXPECT_THAT(removed.arguments(), ElementsAre("run"));
  EXPECT_THAT(removed.notes(), ElementsAre(HasSubstr("stay until 'drover rm'")));
  for (const auto& written : {Words{"run", "--shm-size", "8g", "x"}, Words{"run", "--shm-size=8g", "x"}}) {
    const auto shared = read(written);
    EXPECT_THAT(shared.arguments(), ElementsAre("run"));
    EXPECT_THAT(shared.command_to_run(), ElementsAre("x"));
    EXPECT_THAT(shared.notes(), ElementsAre(HasSubstr("all of its --mem")));
  }
}

TEST_F(LineTest, WhatNobodyKnowsIsRefusedWithWhatWasMeant) {
  EXPECT_THAT(hint({"run", "--nodes", "2", "x"}), HasSubstr("'--gang N'"));
  EXPECT_THAT(hint({"run", "--gpsu", "2"}), "did you mean '--gpus'?");
  EXPECT_THAT(hint({"--json", "ps"}), "write it behind the command: drover ps --json");
  EXPECT_THAT(hint({"--gpus", "2", "run", "x"}), "write it behind the command: drover run --gpus");
  EXPECT_THAT(hint({"--json", "rm", "ps"}), "'drover --help' lists what there is");
  EXPECT_THAT(hint({"run", "-it", "x"}), "'drover run --help' lists what there is");
  EXPECT_THAT(hint({"rmm", "x"}), "did you mean 'rm'?");
  EXPECT_THAT(hint({"run", "--time", "1:2:3:4", "x"}), HasSubstr("--time 90"));
}

TEST_F(LineTest, ALongWordIsNoWork) {
  EXPECT_THAT(hint({std::string(1'000'000, 'x')}), HasSubstr("lists what there is"));
  EXPECT_THAT(hint({"run", "--" + std::string(1'000'000, 'x')}), HasSubstr("lists what there is"));
}

}  // namespace
}  // namespace drover::cli

#include "cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process.h"

namespace drover::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CompletionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto* run = app_.add_subcommand("run", "Run a task");
    run->add_option("--gpus,-g", text_, "The user's GPUs: how many");
    run->add_flag("--detach", flag_, "Leave it");
    app_.add_subcommand("files", "Look")->add_subcommand("ls", "List a folder");
    app_.add_subcommand("hidden", "No")->group("");
    app_.add_option("--socket", text_, "Where");
  }
  CLI::App app_{"", "drover"};
  std::string text_;
  bool flag_ = false;
};

/// What bash would offer for these words, the last of which is being typed.
std::string offered(const std::string& script, const std::string& words, int count) {
  const auto ran =
      run_command({{"bash", "-c",
                    script + "\nCOMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(count - 1) +
                        "\n_drover\necho -n \"${COMPREPLY[*]}\""},
                   minimal_environment()});
  EXPECT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(ran->errors, "");
  return ran->output;
}

TEST_F(CompletionTest, BashOffersWhatFits) {
  const auto script = completion_script(app_, "bash").value();
  EXPECT_EQ(offered(script, "drover ''", 2), "run files --help -h --socket");
  EXPECT_EQ(offered(script, "drover f", 2), "files");
  EXPECT_EQ(offered(script, "drover run --g", 3), "--gpus");
  EXPECT_EQ(offered(script, "drover --socket x files ''", 5), "ls --help -h");
  EXPECT_EQ(offered(script, "drover run -- --g", 4), "");
}

TEST_F(CompletionTest, IdsAreAskedForWhereOneIsExpected) {
  auto* stop = app_.add_subcommand("stop", "Stop a task");
  stop->add_option("task", text_, "Which")->type_name("TASK");
  const auto script = "drover() { echo \"$1-of-$2\"; }\n" + completion_script(app_, "bash").value();
  EXPECT_EQ(offered(script, "drover stop ids", 3), "ids-of-TASK");
  EXPECT_EQ(offered(script, "drover run ids", 3), "");
  for (const auto* shell : {"zsh", "fish"})
    EXPECT_THAT(completion_script(app_, shell).value(), HasSubstr("drover ids ")) << shell;
}

TEST_F(CompletionTest, EveryShellKnowsEveryCommandAndFlag) {
  for (const auto* shell : {"bash", "zsh", "fish"}) {
    const auto script = completion_script(app_, shell).value();
    for (const auto* word : {"run", "files", "ls", "gpus", "detach", "socket"})
      EXPECT_THAT(script, HasSubstr(word)) << shell;
    EXPECT_THAT(script, Not(HasSubstr("hidden"))) << shell;
  }
  EXPECT_FALSE(completion_script(app_, "cmd"));
}

TEST_F(CompletionTest, QuotesInHelpDoNotBreakTheScript) {
  EXPECT_THAT(completion_script(app_, "zsh").value(), HasSubstr(R"('--gpus:The user'\''s GPUs\: how many')"));
  EXPECT_THAT(completion_script(app_, "fish").value(), HasSubstr(R"(-d 'The user'\''s GPUs: how many')"));
}

TEST_F(CompletionTest, TheShellsThatAreHereCanReadTheirScripts) {
  for (const auto* shell : {"bash", "zsh", "fish"}) {
    if (!find_program(shell)) continue;
    const auto ran =
        run_command({{shell, "-n"}, minimal_environment(), completion_script(app_, shell).value()});
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->exit_status, 0) << shell << ": " << ran->errors;
  }
}

}  // namespace
}  // namespace drover::cli

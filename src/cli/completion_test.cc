#include "cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process.h"
#include "cli/line.h"
#include "cli/testing/cli_fixture.h"

namespace drover::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Words = std::vector<std::string>;

class CompletionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    app_.add_option("--socket", text_, "Where");
    auto* run = app_.add_subcommand("run", "Run a task");
    run->add_option("--gpus,-g", text_, "The user's GPUs: how many");
    run->add_option("--pull", text_, "When")->type_name("missing|always|never");
    run->add_option("--queue", text_, "Which")->type_name("QUEUE");
    run->add_option("--after", texts_, "What")->type_name("TASK[:ok|failed|any]");
    run->add_flag("--detach", flag_, "Leave it");
    run->add_option("command")->type_name(kCommandType);
    auto* files = app_.add_subcommand("files", "Look");
    auto* list = files->add_subcommand("ls", "List a folder");
    list->add_option("task", text_, "")->type_name("TASK");
    list->add_option("path", text_, "")->type_name("PATH");
    app_.add_subcommand("stop", "Stop")->add_option("task", texts_, "")->type_name("TASK");
    app_.add_subcommand("rm", "Forget")->add_option("task", text_, "")->type_name("TASK");
    app_.add_subcommand("help", "Help")->add_option("command", texts_, "")->type_name(kCommandWords);
    app_.add_subcommand("hidden", "No")->group("");
  }
  Words words(const Words& typed) {
    Words all;
    for (const auto& [word, meaning] : offers(app_, typed).words) all.push_back(word);
    return all;
  }
  std::string kind(const Words& typed) { return offers(app_, typed).kind; }
  CLI::App app_{"", "drover"};
  std::string text_;
  Words texts_;
  bool flag_ = false;
};

TEST_F(CompletionTest, OffersWhatFits) {
  EXPECT_THAT(words({""}), ElementsAre("run", "files", "stop", "rm", "help"));
  EXPECT_THAT(words({"f"}), ElementsAre("files"));
  EXPECT_THAT(words({"run", "--g"}), ElementsAre("--gpus"));
  EXPECT_THAT(words({"run", "--so"}), ElementsAre("--socket"));
  EXPECT_THAT(words({"--socket", "x", "files", ""}), ElementsAre("ls"));
  EXPECT_THAT(words({"help", "s"}), ElementsAre("stop"));
  EXPECT_THAT(words({"run", "--", "--g"}), IsEmpty());
  EXPECT_THAT(words({"run", "python3", "--g"}), IsEmpty());
  EXPECT_THAT(words({"nonsense", "--nonsense", "r"}), ElementsAre("run", "rm"));
}

TEST_F(CompletionTest, OffersTheValuesOfAFlag) {
  EXPECT_THAT(words({"run", "--pull", ""}), ElementsAre("missing", "always", "never"));
  EXPECT_THAT(words({"run", "--pull", "a"}), ElementsAre("always"));
  EXPECT_THAT(words({"run", "--pull=a"}), ElementsAre("--pull=always"));
  EXPECT_THAT(words({"run", "--gpus", ""}), IsEmpty());
  EXPECT_EQ(kind({"run", "--queue", ""}), "QUEUE");
  EXPECT_EQ(kind({"run", "--after", ""}), "TASK");
  EXPECT_THAT(words({"run", "--after", ""}), IsEmpty());
}

TEST_F(CompletionTest, OffersTasksWhereOneIsExpected) {
  EXPECT_EQ(kind({"files", "ls", ""}), "TASK");
  EXPECT_EQ(kind({"files", "ls", "x", ""}), "") << "the second is a path";
  EXPECT_EQ(kind({"stop", "x", ""}), "RUNNING");
  EXPECT_EQ(kind({"rm", ""}), "ENDED");
  EXPECT_EQ(kind({"rm", "x", ""}), "");
  EXPECT_EQ(offers(app_, {"--socket", "/x", "rm", ""}).values.at("--socket"), "/x");
  EXPECT_EQ(offers(app_, {"rm", "--socket=/x", ""}).values.at("--socket"), "/x");
}

TEST(CompletionLines, AreAsTheShellsReadThem) {
  EXPECT_EQ(offer_line("bash", "redis:7", "an image"), "redis:7\n");
  EXPECT_EQ(offer_line("zsh", "redis:7", "an image: small"), "redis\\:7:an image: small\n");
  EXPECT_EQ(offer_line("fish", "redis:7", "an image"), "redis:7\tan image\n");
}

/// What bash would offer for these words, the last of which is being typed, of a program that offers `all`.
std::string offered(const std::string& all, const std::string& words, int count) {
  const auto ran =
      run_command({{"bash", "-c",
                    "drover() { shift 3; echo \"$*\" >&2; printf '%s\\n' " + all + "; }\n" +
                        completion_script("bash").value() + "\nCOMP_WORDS=(" + words + "); COMP_CWORD=" +
                        std::to_string(count - 1) + "\n_drover\necho -n \"${COMPREPLY[*]}\""},
                   minimal_environment()});
  EXPECT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(ran->errors, "");
  return ran->output;
}

TEST(CompletionScripts, BashPutsWordsTogetherThatItTookApart) {
  EXPECT_EQ(offered("run rm", "drover r", 2), "run rm");
  EXPECT_EQ(offered("redis:7 redis:8", "drover run --image redis : ''", 6), "7 8");
  EXPECT_EQ(offered("--pull=always", "drover run --pull = a", 5), "always");
  EXPECT_EQ(offered("'*' '$(false)'", "drover r", 2), "* $(false)") << "nothing is expanded";
}

TEST(CompletionScripts, TheShellsThatAreHereCanReadTheirs) {
  EXPECT_FALSE(completion_script("cmd"));
  for (const auto* shell : {"bash", "zsh", "fish"}) {
    if (!find_program(shell)) continue;
    const auto ran = run_command({{shell, "-n"}, minimal_environment(), completion_script(shell).value()});
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->exit_status, 0) << shell << ": " << ran->errors;
  }
}

using CompleteTest = testing::CliTest;

TEST_F(CompleteTest, AsksTheDaemonOfTheLine) {
  ASSERT_EQ(ask({"run", "--detach", "--name", "train", "--", "sleep", "9"}).status, 0);
  const auto offered = [&](Words words) {
    words.insert(words.begin(), {"complete", "bash", "--", "--socket", server_.socket()});
    return testing::drover(words).out;
  };
  EXPECT_THAT(offered({"stop", ""}), AllOf(HasSubstr("task-1\n"), HasSubstr("train\n")));
  EXPECT_EQ(offered({"stop", "tr"}), "train\n");
  EXPECT_EQ(offered({"rm", ""}), "") << "it has not ended";
  EXPECT_THAT(offered({"run", "--gpu-model", ""}), HasSubstr("K40m\n"));
  end("task-1", 0, control::TaskState::kFinished);
  EXPECT_THAT(offered({"rm", ""}), HasSubstr("train\n"));
  EXPECT_THAT(offered({"stop", ""}), Not(HasSubstr("train")));
}

}  // namespace
}  // namespace drover::cli

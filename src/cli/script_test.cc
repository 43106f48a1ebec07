#include "cli/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::cli {
namespace {

using ::testing::ElementsAre;

TEST(Script, SaysAtItsHeadWhatItNeeds) {
  const auto script = *parse_script(
      "#!/bin/bash -e\n# trains\n#DROVER --gpus 2 --name \"my run\"\n\n#DROVER -e 'A=b c'\r\nset -u\n#DROVER "
      "--gpus 9\n");
  EXPECT_THAT(script.interpreter, ElementsAre("/bin/bash", "-e"));
  ASSERT_EQ(script.directives.size(), 2u) << "what stands behind the first command is a comment";
  EXPECT_EQ(script.directives[0].line, 3);
  EXPECT_THAT(script.directives[0].words, ElementsAre("--gpus", "2", "--name", "my run"));
  EXPECT_THAT(script.directives[1].words, ElementsAre("-e", "A=b c"));
}

TEST(Script, WordsAreThoseOfAShell) {
  const auto words = [](const std::string& line) {
    return parse_script("#!/bin/sh\n#DROVER " + line)->directives.front().words;
  };
  EXPECT_THAT(words("a\\ b 'c\"d' \"e'f\" ''"), ElementsAre("a b", "c\"d", "e'f", ""));
  EXPECT_THAT(words("  a\t b  "), ElementsAre("a", "b"));
  EXPECT_EQ(parse_script("#!/bin/sh\n#DROVER 'a").error().message, "line 2: a quote is not closed");
}

TEST(Script, WithoutAnInterpreterIsNone) {
  for (const auto* text : {"", "echo hi\n", "#!\n", "\n#!/bin/sh\n"})
    EXPECT_FALSE(parse_script(text)) << text;
}

TEST(Script, TheDirectivesOfOthersAreNoticed) {
  EXPECT_TRUE(parse_script("#!/bin/sh\n#SBATCH -n 1\n")->has_foreign_directives);
  EXPECT_FALSE(parse_script("#!/bin/sh\n#SBATCH -n 1\n#DROVER --gpus 1\n")->has_foreign_directives);
}

TEST(Script, AShellIsGivenTheTextAndOthersThePath) {
  const auto command = [](const std::string& text) {
    return command_of(*parse_script(text), text, "/home/a/x", {"1", "2"});
  };
  EXPECT_THAT(command("#!/bin/sh\necho"),
              ElementsAre("/bin/sh", "-c", "#!/bin/sh\necho", "/home/a/x", "1", "2"));
  EXPECT_THAT(command("#!/usr/bin/env bash\n"),
              ElementsAre("/usr/bin/env", "bash", "-c", "#!/usr/bin/env bash\n", "/home/a/x", "1", "2"));
  EXPECT_THAT(command("#!/usr/bin/python3\n"), ElementsAre("/usr/bin/python3", "/home/a/x", "1", "2"));
  EXPECT_EQ(command("#!/bin/sh\n" + std::string(70 << 10, '#')).size(), 4u) << "too long to be a word";
}

}  // namespace
}  // namespace drover::cli

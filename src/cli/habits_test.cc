#include "cli/habits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cli/testing/run.h"

namespace drover::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Habits, TimesOfSlurmAreInMinutesWhenTheyStandAlone) {
  const std::vector<std::pair<const char*, const char*>> times = {
      {"90", "1h30m"},        {"1:30", "1m30s"},    {"1:00:00", "1h"}, {"2-12", "2d12h"},
      {"1-06:30", "1d6h30m"}, {"0-00:00:01", "1s"}, {"10m", "10m"},    {"1h30m", "1h30m"}};
  for (const auto& [slurm, ours] : times)
    EXPECT_EQ(duration_of_slurm_time(slurm).value_or("refused"), ours) << slurm;
  for (const auto* wrong : {"", ":", "1:2:3:4", "-1", "1-", "1--2", "1.5", "99999999999", "1:x0"})
    EXPECT_FALSE(duration_of_slurm_time(wrong)) << wrong;
}

TEST(Habits, GpusOfSlurmMayNameAType) {
  const std::vector<std::pair<const char*, const char*>> resources = {
      {"gpu", "1"}, {"gpu:2", "2"}, {"gpu:a100:4", "4xa100"}, {"a100:4", "4xa100"}, {"8", "8"}};
  for (const auto& [slurm, ours] : resources)
    EXPECT_EQ(gpus_of_slurm_resource(slurm).value_or("refused"), ours) << slurm;
  EXPECT_FALSE(gpus_of_slurm_resource("gpu:a100:two"));
  EXPECT_FALSE(gpus_of_slurm_resource("gpu:a:b:2"));
}

TEST(Habits, WhatLooksLikeAnImage) {
  for (const auto* image :
       {"ubuntu", "ubuntu:24.04", "nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04", "team/tool@sha256:1f"})
    EXPECT_TRUE(looks_like_image(image)) << image;
  for (const auto* other : {"", "./train.sh", "/bin/ls", "sleep 1", "Train", "a;b", "-x"})
    EXPECT_FALSE(looks_like_image(other)) << other;
}

TEST(Habits, EachSpellingIsThereOnceAndNoneHidesDroversOwn) {
  std::set<std::string> seen;
  for (const auto& habit : flag_habits())
    EXPECT_TRUE(seen.insert(std::string(habit.commands) + " " + std::string(habit.flag)).second)
        << habit.flag;
  for (const auto& habit : verb_habits())
    EXPECT_TRUE(seen.insert(std::string(habit.words)).second) << habit.words;
}

/// The program's answer to one that is written like this, up to where it would ask a daemon.
testing::Ran answer(const std::string& command, const std::string& word) {
  std::vector<std::string> words = {"--socket", "/no/such/socket"};
  std::string part;
  for (const char c : command + " ")
    if (c != ' ')
      part += c;
    else if (!part.empty())
      words.push_back(std::exchange(part, ""));
  if (!word.empty()) words.push_back(word);
  return testing::drover(words);
}

TEST(Habits, ARefusalIsOneSentenceThatNamesWhatThereIs) {
  for (const auto& habit : flag_habits()) {
    const std::string command(habit.commands.substr(0, habit.commands.find(' ')));
    const auto ran = answer(command, std::string(habit.flag));
    if (habit.gets == Gets::kRefusal) {
      EXPECT_EQ(ran.status, 64) << habit.flag;
      EXPECT_THAT(ran.err, HasSubstr("has no flag '" + std::string(habit.flag) + "'\n        "));
      EXPECT_THAT(ran.err, HasSubstr(habit.text));
    } else {
      EXPECT_THAT(ran.err, Not(HasSubstr("has no flag"))) << habit.flag;
    }
  }
  for (const auto& habit : verb_habits()) {
    const auto ran = answer(std::string(habit.words), "");
    if (habit.gets == Gets::kRefusal)
      EXPECT_THAT(ran.err, HasSubstr(habit.text)) << habit.words;
    else
      EXPECT_THAT(ran.err, Not(HasSubstr("has no command"))) << habit.words;
  }
}

}  // namespace
}  // namespace drover::cli

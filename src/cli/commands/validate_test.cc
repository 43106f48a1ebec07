// 'drover validate' needs no daemon: there is none here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/testing/run.h"

namespace drover::cli {
namespace {

using nlohmann::json;
using testing::drover;
using ::testing::HasSubstr;

class ValidateTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    const auto path = ::testing::TempDir() + "validate-" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
};

TEST_F(ValidateTest, SaysWhatIsRight) {
  const auto path = file("web.yaml", "id: web\ncmd: sleep 9\n");
  const auto ran = drover({"validate", path});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, path + ": app '/web' is right\n");
}

TEST_F(ValidateTest, TellsAllMistakesOfAllFilesAndExitsAsForInvalidInput) {
  const auto one = file("one.yaml", "id: web\ncmd: sleep 9\ncpus: lots\n");
  const auto two = file("two.json", "{\"name\": \"x\",}");
  const auto ran = drover({"validate", one, two});
  EXPECT_EQ(ran.status, 64);
  EXPECT_THAT(ran.err, HasSubstr("one.yaml:3:7: /cpus: expected a number\n  cpus: lots\n        ^\n"));
  EXPECT_THAT(ran.err, HasSubstr("two.json:1:"));
  EXPECT_THAT(ran.err, HasSubstr("2 mistakes\n"));
  const auto told = json::parse(drover({"validate", "--json", one}).out);
  EXPECT_EQ(told.at("mistakes").at(0).at("line"), 3);
  EXPECT_EQ(told.at("mistakes").at(0).at("column"), 7);
  EXPECT_EQ(told.at("mistakes").at(0).at("path"), "/cpus");
  EXPECT_EQ(drover({"validate", "--json", one}).status, 64);
}

TEST_F(ValidateTest, WarnsAndIsStrictWhenItIsTold) {
  const auto path = file("typo.yaml", "id: web\ncmd: sleep 9\ninstnces: 3\n");
  const auto ran = drover({"validate", path});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, path + ": app '/web' can be applied, with 1 warning\n");
  EXPECT_THAT(ran.err, HasSubstr("typo.yaml:3:1: warning: /instnces: unknown field 'instnces'\n"));
  EXPECT_EQ(json::parse(drover({"validate", "--json", path}).out).at("warnings").size(), 1u);
  const auto strict = drover({"validate", "--strict", path});
  EXPECT_EQ(strict.status, 64);
  EXPECT_THAT(strict.err, HasSubstr("typo.yaml:3:1: /instnces: unknown field 'instnces'\n"));
  EXPECT_THAT(strict.err, HasSubstr("1 mistake\n"));
  EXPECT_EQ(strict.out, "");
}

TEST_F(ValidateTest, WhatIsWrittenToStartFromIsStrictlyRight) {
  for (const std::string kind : {"app", "job", "task", "gang"}) {
    const auto path = ::testing::TempDir() + "init-" + kind + ".yaml";
    std::filesystem::remove(path);
    const auto made = drover({"init", kind, path});
    EXPECT_EQ(made.status, 0) << made.err;
    const auto ran = drover({"validate", "--strict", path});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr(kind + " '"));
    const auto text = read_file(path).value();
    const auto again = drover({"init", kind, path});
    EXPECT_EQ(again.status, 73) << "it is there already";
    EXPECT_THAT(again.err, HasSubstr("is there already"));
    EXPECT_EQ(read_file(path).value(), text);
    EXPECT_EQ(drover({"init", kind, "-"}).out, text);
  }
  const auto unknown = drover({"init", "pod", "-"});
  EXPECT_EQ(unknown.status, 64);
  EXPECT_THAT(unknown.err, HasSubstr("it is one of app, job, task, gang"));
}

TEST_F(ValidateTest, NothingIsWrittenThroughALink) {
  const auto target = ::testing::TempDir() + "init-target", link = ::testing::TempDir() + "init-link";
  std::filesystem::remove(target);
  std::filesystem::remove(link);
  std::filesystem::create_symlink(target, link);
  EXPECT_EQ(drover({"init", "task", link}).status, 73);
  EXPECT_FALSE(std::filesystem::exists(target));
}

TEST_F(ValidateTest, AFileThatIsNotThereIsNotFound) {
  EXPECT_EQ(drover({"validate", "/nowhere/x.yaml"}).status, 66);
  EXPECT_EQ(drover({"validate"}).status, 64);
}

}  // namespace
}  // namespace drover::cli

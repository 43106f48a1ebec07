// 'drover validate' needs no daemon: there is none here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST_F(ValidateTest, AFileThatIsNotThereIsNotFound) {
  EXPECT_EQ(drover({"validate", "/nowhere/x.yaml"}).status, 66);
  EXPECT_EQ(drover({"validate"}).status, 64);
}

}  // namespace
}  // namespace drover::cli

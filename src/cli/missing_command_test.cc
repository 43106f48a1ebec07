#include "cli/missing_command.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::cli {
namespace {

using nlohmann::json;

json failed(const std::string& command, json fields = json::object()) {
  json task = {{"command", {command, "--epochs", "3"}}, {"working_directory", "/here"}};
  task.update(fields);
  return {{"state", "failed"},
          {"reason", "There is no command '" + command + "' in the container"},
          {"task", std::move(task)}};
}

TEST(MissingCommand, AProgramOfTheFolderIsWrittenWithItsFolder) {
  EXPECT_EQ(missing_command_hint(failed("train.sh"), "/here", Nearby::kProgram),
            "'train.sh' lies in the folder where you are: write ./train.sh");
  EXPECT_EQ(missing_command_hint(failed("train.sh"), "/here", Nearby::kNothing), "");
}

TEST(MissingCommand, AFileIsNoProgram) {
  auto record = failed("./train.sh");
  record["reason"] = "The command './train.sh' cannot be executed in the container: Permission denied";
  EXPECT_EQ(missing_command_hint(record, "/here", Nearby::kFile),
            "'./train.sh' lies in the folder where you are and is not executable: 'chmod +x ./train.sh' "
            "makes it so, "
            "or put the program that runs it before it");
}

TEST(MissingCommand, WhereTheTaskStartsElsewhereTheFolderIsNamed) {
  EXPECT_EQ(
      missing_command_hint(failed("./train.sh", {{"working_directory", "/data"}}), "/here", Nearby::kProgram),
      "'./train.sh' lies in the folder where you are, and the task starts elsewhere: add --workdir .");
  EXPECT_EQ(
      missing_command_hint(failed("train.sh", {{"image", "x"}}), "/here", Nearby::kProgram),
      "'train.sh' lies in the folder where you are, which the image does not have: add --volume .:/work "
      "--workdir /work, and write ./train.sh");
}

TEST(MissingCommand, OtherEndsAreNotItsBusiness) {
  auto record = failed("train.sh");
  record["reason"] = "exited with status 127";
  EXPECT_EQ(missing_command_hint(record, "/here", Nearby::kProgram), "");
}

}  // namespace
}  // namespace drover::cli

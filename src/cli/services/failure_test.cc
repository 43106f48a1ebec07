#include "cli/services/failure.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/testing/fake_api.h"

namespace drover::cli {
namespace {

using nlohmann::json;
using testing::FakeApi;

const json kApp = {{"id", "/web"},
                   {"lastTaskFailure",
                    {{"taskId", "web.1"},
                     {"message", "Command exited with status 2"},
                     {"timestamp", "2026-01-01T00:00:00.000Z"},
                     {"version", "2026-01-01T00:00:00.000Z"}}}};

TEST(Failure, SaysWhichHowAndWhen) {
  auto failure = last_failure(kApp);
  ASSERT_TRUE(failure);
  failure->output = {"no such file"};
  const auto at = *parse_time("2026-01-01T00:00:00.000Z");
  EXPECT_EQ(failure_text(*failure, at + std::chrono::seconds(3), 0),
            "/web: web.1 failed 3s ago: exited with status 2\n  | no such file\n");
  EXPECT_EQ(failure_text(*failure, at - std::chrono::hours(1), 12), "/web: web.1…\n  | no such…\n");
  EXPECT_FALSE(last_failure(json{{"id", "/web"}}));
  EXPECT_TRUE(last_failure(json{{"lastTaskFailure", {{"taskId", 1}}}})->task.empty());
}

TEST(Failure, IsAlikeThoughItsNumbersDiffer) {
  auto failure = *last_failure(kApp);
  failure.output = {"08:15 no /tasks/3356da6198e4/x"};
  auto other = failure;
  other.task = "web.2";
  other.output = {"08:16 no /tasks/a037ba569a64/x"};
  EXPECT_TRUE(is_alike(failure, other));
  other.output = {"08:16 no /tasks/a037ba569a64/y"};
  EXPECT_FALSE(is_alike(failure, other));
  other = failure;
  other.how = "exited with status 1";
  EXPECT_FALSE(is_alike(failure, other));
}

class OutputTest : public ::testing::Test {
 protected:
  std::vector<std::string> output_of(const std::string& standard_error, const std::string& standard_output) {
    stderr_ = standard_error;
    stdout_ = standard_output;
    auto failure = *last_failure(kApp);
    add_output(Client({.socket = api_.socket()}), failure);
    return failure.output;
  }
  FakeApi::Answer answer(const FakeApi::Asked& asked) {
    if (asked.target == "/v1/tasks/web.1/logs?stream=stderr&tail=5") return {200, stderr_};
    if (asked.target == "/v1/tasks/web.1/logs?stream=stdout&tail=5") return {200, stdout_};
    return {404, "{}"};
  }

  std::string stderr_, stdout_;
  FakeApi api_{"/tmp/drover-failure-test." + std::to_string(::getpid()),
               [this](const FakeApi::Asked& asked) { return answer(asked); }};
};

TEST_F(OutputTest, IsTheLastLinesOfStandardErrorOrElseOfStandardOutput) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(output_of("1\n2\n\n3\n4\n5\n6", "x"), Lines({"2", "3", "4", "5", "6"}));
  EXPECT_EQ(output_of("", "out\n"), Lines({"out"}));
  EXPECT_EQ(output_of("\x1b[2Jbad\n", ""), Lines({"?[2Jbad"})) << "no trick on a terminal";
  EXPECT_LT(output_of(std::string(300'000, 'x'), "").at(0).size(), 300u);
  EXPECT_EQ(output_of("", ""), Lines());
}

}  // namespace
}  // namespace drover::cli

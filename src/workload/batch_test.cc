#include "workload/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "workload/task.h"

namespace drover::workload {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Array, IsWrittenAsSlurmWritesIt) {
  EXPECT_THAT(parse_array("0-4")->indices, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(parse_array("7,1,3-5")->indices, ElementsAre(1, 3, 4, 5, 7));
  EXPECT_THAT(parse_array("0-30:10")->indices, ElementsAre(0, 10, 20, 30));
  EXPECT_THAT(parse_array("5")->indices, ElementsAre(5));
  EXPECT_EQ(parse_array("0-4")->at_once, 0);
  EXPECT_EQ(parse_array("0-4%2")->at_once, 2);
  EXPECT_EQ(parse_array("0-4095")->indices.size(), 4096u);
}

TEST(Array, WhatIsNoneIsRefusedInWords) {
  for (const auto* text : {"", "a", "1-", "-3", "5-1", "1,,2", "0-9:0", "0-9%0", "0-9%", "0-9%x", "1;2",
                           "0-9:2:3", "3,3", "0-9,5", "4000001", "99999999999", " 1"})
    EXPECT_FALSE(parse_array(text)) << text;
  EXPECT_THAT(parse_array("0-9,5").error().message, HasSubstr("5 stands there twice"));
  EXPECT_THAT(parse_array("0-9999").error().message, HasSubstr("4096 tasks at most, not 10000"));
  EXPECT_THAT(parse_array("0-4000000").error().message, HasSubstr("not 4000001")) << "without making them";
}

TEST(Dependency, NamesATaskAndHowItIsToHaveEnded) {
  EXPECT_EQ(parse_dependency("train"), (Dependency{"train", EndedHow::kOk}));
  EXPECT_EQ(parse_dependency("train:failed"), (Dependency{"train", EndedHow::kFailed}));
  EXPECT_EQ(parse_dependency("a:b:any"), (Dependency{"a:b", EndedHow::kAny}));
  EXPECT_EQ(parse_dependency("train:soon"), (Dependency{"train:soon", EndedHow::kOk})) << "names may be so";
}

TEST(RetryDelay, DoublesUpToALimit) {
  using std::chrono::seconds;
  EXPECT_EQ(retry_delay(1), seconds(5));
  EXPECT_EQ(retry_delay(2), seconds(10));
  EXPECT_EQ(retry_delay(6), seconds(160));
  EXPECT_EQ(retry_delay(7), seconds(300));
  EXPECT_EQ(retry_delay(1000), seconds(300));
}

TEST(BatchFields, AreReadAndKept) {
  auto request = decode_task_request({{"command", {"x"}},
                                      {"after", {"a", "b:any"}},
                                      {"begin", "2026-11-27T18:00:00Z"},
                                      {"retries", 3},
                                      {"requeue", "lost"}});
  ASSERT_TRUE(request) << request.error().message;
  auto& batch = request->task.batch;
  EXPECT_THAT(batch.after, ElementsAre(Dependency{"a"}, Dependency{"b", EndedHow::kAny}));
  EXPECT_EQ(batch.begin, *parse_time("2026-11-27T18:00:00.000Z"));
  EXPECT_EQ(batch.retries, 3);
  EXPECT_EQ(batch.requeue, Requeue::kLost);
  batch.array.emplace() = {"0f3a", 7, 100, 10};
  request->task.user.name = request->task.owner_name = "alice";
  EXPECT_EQ(decode_task(encode(request->task)), request->task);

  EXPECT_THAT(decode_task_request({{"command", {"x"}}, {"after", "a"}})->task.batch.after,
              ElementsAre(Dependency{"a"}));
  EXPECT_EQ(decode_task_request({{"command", {"x"}}, {"begin", "2h"}})->begin_in, std::chrono::hours(2));
  for (const json& wrong :
       {json{{"begin", "soon"}}, json{{"retries", -1}}, json{{"retries", 1001}}, json{{"requeue", "yes"}},
        json{{"after", 5}}, json{{"after", std::vector<std::string>(101, "a")}}}) {
    json body = {{"command", {"x"}}};
    body.update(wrong);
    EXPECT_FALSE(decode_task_request(body)) << wrong;
  }
}

TEST(BatchFields, AnArrayIsASubmissionOfItsOwn) {
  const auto submission = decode_submission({{"command", {"x"}}, {"array", "0-9%2"}, {"gpus", 1}});
  ASSERT_TRUE(submission) << submission.error().message;
  const auto& array = std::get<ArrayRequest>(*submission);
  EXPECT_EQ(array.array.indices.size(), 10u);
  EXPECT_EQ(array.array.at_once, 2);
  EXPECT_EQ(array.task.task.resources.gpu_count(), 1);
  EXPECT_EQ(
      decode_submission({{"command", {"x"}}, {"array", "0-9"}, {"gang", {{"size", 2}}}}).error().message,
      "The gang: an array of gangs cannot be submitted at once");
  EXPECT_FALSE(decode_submission({{"command", {"x"}}, {"array", "0-9"}, {"tty", true}}));
  EXPECT_FALSE(decode_submission({{"command", {"x"}}, {"array", 7}}));
  const auto large = decode_submission({{"command", {std::string(64 << 10, 'x')}}, {"array", "0-4095"}});
  ASSERT_FALSE(large);
  EXPECT_THAT(large.error().message, HasSubstr("are allowed"));
}

}  // namespace
}  // namespace drover::workload

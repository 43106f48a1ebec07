#include "api/mesos/executor_call.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/mesos/protobuf_json.h"

namespace drover::api::mesos {
namespace {

Request executor_request(std::string parts) {
  Request request;
  request.method = "POST";
  request.content_type = "application/json";
  request.body = R"({"executor_id":{"value":"e"},"framework_id":{"value":"F"},)" + std::move(parts) + "}";
  return request;
}

/// "" when the call is taken.
std::string refusal_of(const std::string& parts) {
  const auto call = read_executor_call(executor_request(parts));
  return call ? "" : call.error().body;
}

std::string update_with(const std::string& fields) {
  return R"("type":"UPDATE","update":{"status":{"task_id":{"value":"t"},)" + fields + "}}";
}

constexpr const char* kUuidField = R"("uuid":"AAECAwQFBgcICQoLDA0ODw==")";

TEST(ExecutorCall, WhatItsTypeNeedsIsThere) {
  EXPECT_EQ(refusal_of(R"("type":"SUBSCRIBE","subscribe":{})"), "");
  EXPECT_EQ(refusal_of(R"("type":"HEARTBEAT")"), "");
  EXPECT_EQ(refusal_of(R"("type":"MESSAGE","message":{"data":"aGk="})"), "");
  const std::string prefix = "Failed to validate executor::Call: Expecting ";
  EXPECT_EQ(refusal_of(R"("subscribe":{})"), prefix + "'type' to be present");
  for (const auto* type : {"SUBSCRIBE", "UPDATE", "MESSAGE"})
    EXPECT_TRUE(refusal_of(fmt::format(R"("type":"{}")", type)).starts_with(prefix)) << type;
}

TEST(ExecutorCall, AnUpdateIsOfTheExecutorItselfAndHasAnId) {
  const auto update = [](const std::string& state, const std::string& more) {
    return update_with(fmt::format(R"("state":"{}",{})", state, more));
  };
  const std::string own = R"("source":"SOURCE_EXECUTOR")";
  EXPECT_EQ(refusal_of(update("TASK_RUNNING", own + "," + kUuidField)), "");
  EXPECT_NE(refusal_of(update("TASK_RUNNING", own)), "") << "no uuid";
  EXPECT_NE(refusal_of(update("TASK_RUNNING", own + R"(,"uuid":"AAEC")")), "") << "a short one";
  EXPECT_NE(refusal_of(update("TASK_RUNNING", kUuidField)), "") << "no source";
  EXPECT_NE(refusal_of(update("TASK_RUNNING", std::string(R"("source":"SOURCE_AGENT",)") + kUuidField)), "");
  EXPECT_NE(refusal_of(update("TASK_STAGING", own + "," + kUuidField)), "");
  EXPECT_NE(refusal_of(update("TASK_RUNNING", own + "," + kUuidField + R"(,"executor_id":{"value":"x"})")),
            "");
  const auto again = R"("type":"SUBSCRIBE","subscribe":{"unacknowledged_updates":[{"status":{"task_id":)"
                     R"({"value":"t"},"state":"TASK_RUNNING"}}]})";
  EXPECT_NE(refusal_of(again), "") << "those that are sent again are held to the same";
}

TEST(ExecutorCall, ProtobufHasTheNumbersOfMesos) {
  v1::executor::Call call;
  Request request;
  request.method = "POST";
  request.content_type = "application/x-protobuf";
  // executor_id "e", framework_id "F", type MESSAGE, message {data "hi"}
  request.body = std::string("\x0a\x03\x0a\x01") + "e" + "\x12\x03\x0a\x01" + "F" + "\x18\x03" +
                 "\x32\x04\x12\x02" + "hi";
  const auto read = read_executor_call(request);
  ASSERT_TRUE(read) << read.error().body;
  EXPECT_EQ(read->executor_id().value(), "e");
  EXPECT_EQ(read->message().data(), "hi");
  v1::executor::Event event;
  event.set_type(v1::executor::Event::LAUNCH_GROUP);
  event.mutable_launch_group()->mutable_task_group();
  EXPECT_EQ(event.SerializeAsString(), std::string("\x08\x08\x42\x02\x0a\x00", 6));
}

}  // namespace
}  // namespace drover::api::mesos

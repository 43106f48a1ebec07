#include "api/mesos/call.h"

#include <gtest/gtest.h>

#include "api/mesos/record_io.h"

namespace drover::api::mesos {
namespace {

Request call_request(std::string body, std::string content_type = "application/json") {
  Request request;
  request.method = "POST";
  request.content_type = std::move(content_type);
  request.body = std::move(body);
  return request;
}

/// The text of the refusal, with its status in front.
std::string refusal(const Request& request) {
  const auto call = read_call(request);
  if (call) return "";
  EXPECT_EQ(call.error().content_type, "text/plain; charset=utf-8");
  return std::to_string(call.error().status) + " " + call.error().body;
}

TEST(Call, RefusalsAreThoseOfMesos) {
  auto get = call_request("");
  get.method = "GET";
  EXPECT_EQ(refusal(get), "405 405 Method Not Allowed. Expecting one of { 'POST' }, but received 'GET'.");
  EXPECT_EQ(read_call(get).error().headers.front(), (std::pair<std::string, std::string>("Allow", "POST")));
  EXPECT_EQ(refusal(call_request("{}", "")), "400 Expecting 'Content-Type' to be present");
  EXPECT_EQ(refusal(call_request("{}", "text/xml")),
            "415 Expecting 'Content-Type' of application/json or application/x-protobuf");
  EXPECT_TRUE(refusal(call_request("{")).starts_with("400 Failed to parse body into JSON: "));
  EXPECT_EQ(refusal(call_request("3")),
            "400 Failed to convert JSON into Call protobuf: Expecting a JSON object");
  EXPECT_EQ(refusal(call_request(R"({"type":"SUBSCRIBE","subscribe":{"framework_info":{"name":"n"}}})")),
            "400 Failed to convert JSON into Call protobuf: Missing required fields: "
            "subscribe.framework_info.user");
  EXPECT_EQ(refusal(call_request("\x08", "application/x-protobuf")),
            "400 Failed to parse body into Call protobuf");
  EXPECT_EQ(refusal(call_request("{}")),
            "400 Failed to validate scheduler::Call: Expecting 'type' to be present");
}

TEST(Call, TextIsUtf8) {
  v1::Call call;
  call.set_type(v1::Call::SUBSCRIBE);
  auto& info = *call.mutable_subscribe()->mutable_framework_info();
  info.set_user("root");
  info.set_name("gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(refusal(call_request(call.SerializeAsString(), "application/x-protobuf")), "");
  auto& label = *info.mutable_labels()->add_labels();
  label.set_key("\xff\xfe");
  EXPECT_EQ(refusal(call_request(call.SerializeAsString(), "application/x-protobuf")),
            "400 Failed to parse body into Call protobuf: 'subscribe.framework_info.labels.labels.key' is "
            "not UTF-8");
  info.clear_labels();
  info.add_roles("fine");
  info.add_roles("\xc3\x28");
  EXPECT_EQ(refusal(call_request(call.SerializeAsString(), "application/x-protobuf")),
            "400 Failed to parse body into Call protobuf: 'subscribe.framework_info.roles' is not UTF-8");
  v1::Call bytes;  // of bytes nothing is asked
  bytes.set_type(v1::Call::MESSAGE);
  bytes.mutable_framework_id()->set_value("F");
  bytes.mutable_message()->mutable_agent_id()->set_value("A");
  bytes.mutable_message()->mutable_executor_id()->set_value("E");
  bytes.mutable_message()->set_data("\xff\xfe");
  EXPECT_EQ(refusal(call_request(bytes.SerializeAsString(), "application/x-protobuf")), "");
}

TEST(Call, EachTypeNeedsItsPart) {
  const std::string prefix = "400 Failed to validate scheduler::Call: ";
  EXPECT_EQ(refusal(call_request(R"({"type":"DANCE"})")), prefix + "Expecting 'type' to be present");
  EXPECT_EQ(refusal(call_request(R"({"type":"SUBSCRIBE"})")), prefix + "Expecting 'subscribe' to be present");
  EXPECT_EQ(refusal(call_request(R"({"type":"TEARDOWN"})")),
            prefix + "Expecting 'framework_id' to be present");
  for (const std::string name :
       {"accept", "decline", "kill", "shutdown", "acknowledge", "reconcile", "message", "request"}) {
    std::string type = name;
    for (auto& c : type) c = static_cast<char>(c - 'a' + 'A');
    EXPECT_EQ(refusal(call_request(R"({"framework_id":{"value":"F"},"type":")" + type + R"("})")),
              prefix + "Expecting '" + name + "' to be present");
  }
  EXPECT_EQ(refusal(call_request(R"({"type":"SUBSCRIBE","framework_id":{"value":"a"},
                             "subscribe":{"framework_info":{"user":"u","name":"n","id":{"value":"b"}}}})")),
            prefix + "'framework_id' differs from 'subscribe.framework_info.id'");
  EXPECT_EQ(refusal(call_request(R"({"type":"ACKNOWLEDGE","framework_id":{"value":"F"},"acknowledge":
                             {"agent_id":{"value":"A"},"task_id":{"value":"T"},"uuid":"AAAA"}})")),
            prefix + "Not a valid UUID");
  for (const auto* type : {"TEARDOWN", "REVIVE", "SUPPRESS", "UNKNOWN"})
    EXPECT_EQ(refusal(call_request(std::string(R"({"framework_id":{"value":"F"},"type":")") + type + "\"}")),
              "");
}

TEST(Call, BothLanguagesSayTheSame) {
  const auto call = read_call(
      call_request(R"({"type":"KILL","framework_id":{"value":"F"},"kill":{"task_id":{"value":"T"}}})"));
  ASSERT_TRUE(call);
  // Field 1 (F), type 6, field 6 (T), by hand from the public numbers.
  const std::string bytes(
      "\x0a\x03\x0a\x01"
      "F"
      "\x10\x06"
      "\x32\x05\x0a\x03\x0a\x01"
      "T");
  EXPECT_EQ(call->SerializeAsString(), bytes);
  const auto again = read_call(call_request(bytes, "application/x-protobuf"));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->kill().task_id().value(), "T");
}

TEST(Call, EventsAreRecords) {
  v1::Event event;
  event.set_type(v1::Event::HEARTBEAT);
  EXPECT_EQ(event_record(event, MediaType::kJson), "20\n{\"type\":\"HEARTBEAT\"}");
  EXPECT_EQ(event_record(event, MediaType::kProtobuf), std::string("2\n\x08\x08"));
}

TEST(Call, AnswersAreInWhatIsAccepted) {
  auto request = call_request("{}");
  EXPECT_EQ(answer_type(request), MediaType::kJson);
  request.headers["accept"] = "application/x-protobuf";
  EXPECT_EQ(answer_type(request), MediaType::kProtobuf);
  request.headers["accept"] = "text/html";
  EXPECT_EQ(answer_type(request).error().body,
            "Expecting 'Accept' to allow 'application/x-protobuf' or 'application/json'");
  EXPECT_EQ(answer_type(request).error().status, 406);
}

}  // namespace
}  // namespace drover::api::mesos

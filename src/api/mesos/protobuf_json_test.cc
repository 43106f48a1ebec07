#include "api/mesos/protobuf_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "api/mesos/protocol.h"

namespace drover::api::mesos {
namespace {

using nlohmann::json;

std::string json_mistake(const std::string& text, google::protobuf::Message&& message) {
  const auto read = from_json(json::parse(text), message);
  return read ? "" : read.error().message;
}

TEST(ProtobufJson, EventsReadAsThoseOfMesos) {
  v1::Event event;
  event.set_type(v1::Event::SUBSCRIBED);
  auto& subscribed = *event.mutable_subscribed();
  subscribed.mutable_framework_id()->set_value("F-0000");
  subscribed.set_heartbeat_interval_seconds(15);
  auto& master = *subscribed.mutable_master_info();
  master.set_id("F");
  master.set_ip(16777343);
  master.set_port(15100);
  master.set_pid("master@127.0.0.1:15100");
  master.set_hostname("localhost");
  master.set_version("1.12.0");
  master.mutable_address()->set_hostname("localhost");
  master.mutable_address()->set_ip("127.0.0.1");
  master.mutable_address()->set_port(15100);
  for (const auto type : {v1::MasterInfo::Capability::AGENT_UPDATE,
                          v1::MasterInfo::Capability::AGENT_DRAINING, v1::MasterInfo::Capability::QUOTA_V2})
    master.add_capabilities()->set_type(type);
  EXPECT_EQ(to_json(event),
            R"({"type":"SUBSCRIBED","subscribed":{"framework_id":{"value":"F-0000"},)"
            R"("heartbeat_interval_seconds":15.0,"master_info":{"id":"F","ip":16777343,"port":15100,)"
            R"("pid":"master@127.0.0.1:15100","hostname":"localhost","version":"1.12.0",)"
            R"("address":{"hostname":"localhost","ip":"127.0.0.1","port":15100},)"
            R"("capabilities":[{"type":"AGENT_UPDATE"},{"type":"AGENT_DRAINING"},{"type":"QUOTA_V2"}]}}})");
}

TEST(ProtobufJson, ResourcesAndAttributesReadAsThoseOfMesos) {
  v1::Offer offer;
  auto& ports = *offer.add_resources();
  ports.set_name("ports");
  ports.set_type(v1::Value::RANGES);
  auto& range = *ports.mutable_ranges()->add_range();
  range.set_begin(31000);
  range.set_end(31100);
  ports.set_role("*");
  auto& gpus = *offer.add_resources();
  gpus.set_name("gpus");
  gpus.set_type(v1::Value::SCALAR);
  gpus.mutable_scalar()->set_value(2);
  auto& rack = *offer.add_attributes();
  rack.set_name("rack");
  rack.set_type(v1::Value::SCALAR);
  rack.mutable_scalar()->set_value(7);
  EXPECT_EQ(
      to_json(offer),
      R"({"resources":[{"name":"ports","type":"RANGES","ranges":{"range":[{"begin":31000,"end":31100}]},)"
      R"("role":"*"},{"name":"gpus","type":"SCALAR","scalar":{"value":2.0}}],)"
      R"("attributes":[{"name":"rack","type":"SCALAR","scalar":{"value":7.0}}]})");
}

TEST(ProtobufJson, BytesAreBase64AndWideIntegersAreNumbers) {
  v1::TaskStatus status;
  status.mutable_task_id()->set_value("t");
  status.set_state(v1::TASK_RUNNING);
  status.set_uuid(std::string("\x00\x01\xfe\xff", 4));
  status.mutable_unreachable_time()->set_nanoseconds(std::numeric_limits<std::int64_t>::max());
  const auto text = to_json(status);
  EXPECT_EQ(text, R"({"task_id":{"value":"t"},"state":"TASK_RUNNING","uuid":"AAH+/w==",)"
                  R"("unreachable_time":{"nanoseconds":9223372036854775807}})");
  v1::TaskStatus read;
  ASSERT_TRUE(from_json(json::parse(text), read));
  EXPECT_EQ(read.SerializeAsString(), status.SerializeAsString());
}

TEST(ProtobufJson, DefaultsAreWritten) {
  v1::FrameworkInfo info;
  info.set_user("root");
  info.set_name("n");
  EXPECT_EQ(to_json(info), R"({"user":"root","name":"n","failover_timeout":0.0,"checkpoint":false})");
}

TEST(ProtobufJson, NullIsUnsetAndUnknownIsIgnored) {
  v1::Call call;
  ASSERT_TRUE(
      from_json(json::parse(R"({"type": null, "framework_id": {"value": "x", "colour": [1]}, "none": 1,
                                        "accept": {"offer_ids": [null, {"value": "O"}]}})"),
                call));
  EXPECT_FALSE(call.has_type());
  EXPECT_EQ(call.framework_id().value(), "x");
  EXPECT_EQ(call.accept().offer_ids_size(), 1);
  ASSERT_TRUE(from_json(json::parse(R"({"type": "DANCE"})"), call));
  EXPECT_FALSE(call.has_type());
}

TEST(ProtobufJson, MapsAreObjects) {
  v1::TaskInfo task;
  ASSERT_TRUE(from_json(json::parse(R"({"limits": {"cpus": {"value": 2}, "mem": {"value": 64.5}}})"), task));
  EXPECT_EQ(task.limits().at("mem").value(), 64.5);
  EXPECT_EQ(json::parse(to_json(task)),
            json::parse(R"({"limits": {"cpus": {"value": 2.0}, "mem": {"value": 64.5}}})"));
}

TEST(ProtobufJson, MistakesAreNamedByTheirField) {
  EXPECT_EQ(json_mistake("[]", v1::Call()), "Expecting a JSON object");
  EXPECT_EQ(json_mistake(R"({"framework_id": "x"})", v1::Call()),
            "Not expecting a JSON string for field 'framework_id'");
  EXPECT_EQ(json_mistake(R"({"accept": {"offer_ids": "O"}})", v1::Call()),
            "Not expecting a JSON string for field 'offer_ids'");
  EXPECT_EQ(json_mistake(R"({"framework_id": [{"value": "x"}]})", v1::Call()),
            "Not expecting a JSON array for field 'framework_id'");
  EXPECT_EQ(json_mistake(R"({"checkpoint": "yes"})", v1::FrameworkInfo()),
            "Not expecting a JSON string for field 'checkpoint'");
  EXPECT_EQ(json_mistake(R"({"type": 3})", v1::Call()), "Not expecting a JSON number for field 'type'");
  EXPECT_EQ(json_mistake(R"({"checkpoint": 1})", v1::FrameworkInfo()),
            "Not expecting a JSON number for field 'checkpoint'");
  EXPECT_EQ(json_mistake(R"({"name": true})", v1::FrameworkInfo()),
            "Not expecting a JSON boolean for field 'name'");
  EXPECT_EQ(json_mistake(R"({"uuid": "?"})", v1::TaskStatus()), "Failed to base64 decode bytes field 'uuid'");
  EXPECT_EQ(json_mistake(R"({"state": "TASK_DANCING"})", v1::TaskStatus()),
            "Failed to find enum for 'TASK_DANCING'");
  for (const auto* number : {"-1", "18446744073709551616", "2e19", "1.5", "\"x\"", "\"1 \""})
    EXPECT_NE(json_mistake(std::string(R"({"begin": )") + number + "}", v1::Value::Range()), "") << number;
  for (const auto* number : {"2147483648", "-2147483649", "1e300", "2147483647.5"})
    EXPECT_NE(json_mistake(std::string(R"({"port": )") + number + "}", v1::Address()), "") << number;
}

TEST(ProtobufJson, WideIntegersMayComeAsTextOrWithAPoint) {
  v1::Value::Range range;
  ASSERT_TRUE(from_json(json::parse(R"({"begin": "18446744073709551615", "end": 31000.0})"), range));
  EXPECT_EQ(range.begin(), 18446744073709551615U);
  EXPECT_EQ(range.end(), 31000U);
}

TEST(ProtobufJson, ALoneValueIsOneItemOfARepeatedField) {
  v1::Call call;
  ASSERT_TRUE(from_json(json::parse(R"({"accept": {"offer_ids": {"value": "O"},
                                       "operations": {"type": "LAUNCH", "launch": {"task_infos": []}}}})"),
                        call));
  ASSERT_EQ(call.accept().offer_ids_size(), 1);
  EXPECT_EQ(call.accept().offer_ids(0).value(), "O");
  EXPECT_EQ(call.accept().operations_size(), 1);
  v1::FrameworkInfo info;
  ASSERT_TRUE(from_json(json::parse(R"({"roles": "a", "capabilities": {"type": "GPU_RESOURCES"}})"), info));
  ASSERT_EQ(info.roles_size(), 1);
  EXPECT_EQ(info.roles(0), "a");
  ASSERT_EQ(info.capabilities_size(), 1);
  EXPECT_EQ(info.capabilities(0).type(), v1::FrameworkInfo::Capability::GPU_RESOURCES);
}

TEST(ProtobufJson, NumbersAndBooleansMayStandInQuotes) {
  v1::FrameworkInfo info;
  ASSERT_TRUE(from_json(json::parse(R"({"checkpoint": "true", "failover_timeout": "2.5"})"), info));
  EXPECT_TRUE(info.checkpoint());
  EXPECT_EQ(info.failover_timeout(), 2.5);
  v1::Value::Range range;
  ASSERT_TRUE(from_json(json::parse(R"({"begin": "5.0", "end": "7"})"), range));
  EXPECT_EQ(range.begin(), 5U);
  EXPECT_EQ(range.end(), 7U);
}

TEST(ProtobufJson, LimitsMayBeInfinite) {
  v1::TaskInfo task;
  ASSERT_TRUE(from_json(
      json::parse(R"({"limits": {"cpus": {"value": "Infinity"}, "mem": {"value": "64.5"}}})"), task));
  EXPECT_EQ(task.limits().at("cpus").value(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(json::parse(to_json(task)),
            json::parse(R"({"limits": {"cpus": {"value": "Infinity"}, "mem": {"value": 64.5}}})"));
  EXPECT_EQ(json_mistake(R"({"failover_timeout": "soon"})", v1::FrameworkInfo()),
            "Not expecting a JSON string for field 'failover_timeout'");
}

}  // namespace
}  // namespace drover::api::mesos

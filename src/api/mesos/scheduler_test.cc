// The scheduler API on the wire: what is sent and received is bytes.

#include "api/mesos/scheduler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/mesos/record_io.h"
#include "api/testing/fake_daemon.h"
#include "api/testing/raw_http.h"

namespace drover::api::mesos {
namespace {

using nlohmann::json;
using testing::body_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testing::RawConnection;
using testing::ServerFixture;
using testing::status_of;

std::string post(const std::string& body, const std::string& headers = "",
                 const std::string& path = "/api/v1/scheduler") {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}\r\n{}", path,
      body.size(), headers, body);
}

/// A subscription: reads chunk by chunk, for each record is one.
class Subscription {
 public:
  Subscription(const std::string& socket, const std::string& body, const std::string& headers = "")
      : connection_(RawConnection::to_unix(socket)) {
    connection_.send(post(body, headers));
    head = read_until("\r\n\r\n");
  }
  /// One record without its length; "" when the stream has ended.
  std::string record() {
    const auto size = std::stoul(read_until("\r\n"), nullptr, 16);
    if (size == 0) return "";
    std::string chunk = read_bytes(size);
    read_bytes(2);
    RecordDecoder decoder(1 << 20);
    const auto records = decoder.feed(chunk);
    EXPECT_TRUE(records && records->size() == 1 && decoder.between_records())
        << "a chunk is a record: " << chunk;
    return records->front();
  }
  json event() { return json::parse(record()); }
  /// The next event of that type; others are skipped.
  json event(const std::string& type) {
    while (true)
      if (auto next = event(); next.at("type") == type) return next;
  }
  void close() { connection_.close(); }

  std::string header(const std::string& name) const {
    const auto begin = head.find("\r\n" + name + ": ") + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
  std::string head;

 private:
  std::string read_until(const std::string& end) {
    while (buffer_.find(end) == std::string::npos) more(end);
    return read_bytes(buffer_.find(end) + end.size());
  }
  std::string read_bytes(std::size_t size) {
    while (buffer_.size() < size) more("");
    auto bytes = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return bytes;
  }
  void more(const std::string&) {
    const auto piece = connection_.receive_some();
    if (piece.empty()) throw std::runtime_error("the stream ended: " + buffer_);
    buffer_ += piece;
  }
  RawConnection connection_;
  std::string buffer_;
};

const std::string kSubscribe =
    R"({"type":"SUBSCRIBE","subscribe":{"framework_info":{"user":"root","name":"test","failover_timeout":60.0,)"
    R"("capabilities":[{"type":"GPU_RESOURCES"},{"type":"PARTITION_AWARE"}]}}})";

class SchedulerTest : public ::testing::Test {
 protected:
  SchedulerTest() {
    auto node = server_.daemon().state().machine();
    node.inventory = server_.daemon().inventory();
    node.attributes = {{"gpu_model", {"Tesla K40m"}}, {"rack", {"7"}}};
    happens(control::event::NodeChanged{std::move(node)});
  }
  Subscription subscribe(const std::string& body = kSubscribe) { return {server_.socket(), body}; }
  std::string ask(const std::string& bytes) {
    auto connection = RawConnection::to_unix(server_.socket());
    connection.send(bytes);
    auto answer = connection.receive("\r\n\r\n");
    const auto length = answer.find("Content-Length: ");
    const auto whole = answer.find("\r\n\r\n") + 4 + std::stoul(answer.substr(length + 16));
    while (answer.size() < whole) answer += connection.receive_some();
    return answer;
  }
  /// The answer to a call of a framework.
  std::string call(const Subscription& subscription, const std::string& framework, json body) {
    body["framework_id"] = {{"value", framework}};
    return ask(post(body.dump(), "Mesos-Stream-Id: " + subscription.header("Mesos-Stream-Id") + "\r\n"));
  }
  static json task_info(const json& offer, const std::string& id, double gpus, double cpus = 0.5) {
    return {{"name", id},
            {"task_id", {{"value", id}}},
            {"agent_id", offer.at("agent_id")},
            {"resources",
             {{{"name", "cpus"}, {"type", "SCALAR"}, {"scalar", {{"value", cpus}}}},
              {{"name", "mem"}, {"type", "SCALAR"}, {"scalar", {{"value", 32.0}}}},
              {{"name", "gpus"}, {"type", "SCALAR"}, {"scalar", {{"value", gpus}}}}}},
            {"command", {{"value", "sleep 1"}}}};
  }
  static json accept(const json& offer, json task_infos) {
    return {{"type", "ACCEPT"},
            {"accept",
             {{"offer_ids", json::array({offer.at("id")})},
              {"operations",
               json::array({{{"type", "LAUNCH"}, {"launch", {{"task_infos", std::move(task_infos)}}}}})}}}};
  }
  static json acknowledge(const json& status) {
    return {{"type", "ACKNOWLEDGE"},
            {"acknowledge",
             {{"agent_id", status.at("agent_id")},
              {"task_id", status.at("task_id")},
              {"uuid", status.at("uuid")}}}};
  }
  void happens(const control::Event& event) {
    EXPECT_TRUE(server_.on_strand([&] { return server_.daemon().change(event).has_value(); }));
  }
  /// Drover's id of the only task.
  std::string task() {
    return server_.on_strand([this] { return server_.daemon().state().tasks.begin()->first; });
  }

  ServerFixture server_;
};

TEST_F(SchedulerTest, ASubscriptionBeginsAsThatOfMesos) {
  auto stream = subscribe();
  EXPECT_THAT(stream.head, HasSubstr("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(stream.head, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(stream.head, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(stream.header("Mesos-Stream-Id"), MatchesRegex("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"));
  const auto first = stream.event();
  EXPECT_EQ(first.at("type"), "SUBSCRIBED");
  EXPECT_EQ(first.at("subscribed").at("heartbeat_interval_seconds"), 15.0);
  EXPECT_THAT(first.at("subscribed").at("framework_id").at("value").get<std::string>(),
              MatchesRegex("[0-9a-f-]{36}-0000"));
  EXPECT_EQ(first.at("subscribed").at("master_info").at("version"), "1.12.0");
  EXPECT_EQ(stream.record(), R"({"type":"HEARTBEAT"})");
  const auto offers = stream.event();
  EXPECT_EQ(offers.at("type"), "OFFERS");
  const auto& offer = offers.at("offers").at("offers").at(0);
  std::vector<std::string> names;
  for (const auto& resource : offer.at("resources")) {
    names.push_back(resource.at("name"));
    EXPECT_EQ(resource.at("role"), "*");
  }
  EXPECT_THAT(names, ElementsAre("ports", "cpus", "mem", "disk", "gpus"));
  EXPECT_TRUE(offer.at("url").at("address").contains("ip"));
  EXPECT_EQ(offer.at("attributes").dump(),
            R"([{"name":"gpu_model","text":{"value":"Tesla K40m"},"type":"TEXT"},)"
            R"({"name":"rack","scalar":{"value":7.0},"type":"SCALAR"}])");
}

TEST_F(SchedulerTest, CallsThatAreNotForASubscriberAreRefused) {
  auto stream = subscribe();
  const auto framework = stream.event().at("subscribed").at("framework_id").at("value").get<std::string>();
  const auto revive = json{{"type", "REVIVE"}, {"framework_id", {{"value", framework}}}}.dump();
  const auto stream_id = stream.header("Mesos-Stream-Id");
  const auto accepted =
      ask(post(revive, "Mesos-Stream-Id: " + stream_id + "\r\n", "/master/api/v1/scheduler"));
  EXPECT_EQ(status_of(accepted), 202);
  EXPECT_THAT(accepted, HasSubstr("\r\nContent-Length: 0\r\n"));
  EXPECT_EQ(body_of(accepted), "");
  EXPECT_EQ(body_of(ask(post(revive))),
            "All non-subscribe calls should include the 'Mesos-Stream-Id' header");
  EXPECT_EQ(body_of(ask(post(revive, "Mesos-Stream-Id: x\r\n"))),
            "The stream ID 'x' included in this request didn't match the stream ID currently associated with "
            "framework ID " +
                framework);
  EXPECT_EQ(body_of(ask(post(R"({"type":"REVIVE","framework_id":{"value":"x"}})"))),
            "Framework cannot be found");
  EXPECT_EQ(body_of(ask(post(kSubscribe, "Mesos-Stream-Id: x\r\n"))),
            "Subscribe calls should not include the 'Mesos-Stream-Id' header");
  const auto not_acceptable = ask(post(kSubscribe, "Accept: text/html\r\n"));
  EXPECT_EQ(status_of(not_acceptable), 406);
  EXPECT_THAT(not_acceptable, HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"));
  const auto get = ask("GET /api/v1/scheduler HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(status_of(get), 405);
  EXPECT_THAT(get, HasSubstr("\r\nAllow: POST\r\n"));
  EXPECT_EQ(status_of(ask(post(json{{"type", "UNKNOWN"}, {"framework_id", {{"value", framework}}}}.dump(),
                               "Mesos-Stream-Id: " + stream_id + "\r\n"))),
            501);
  stream.close();
  for (int i = 0; i < 500 && status_of(ask(post(revive))) != 403; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(body_of(ask(post(revive))), "Framework is not subscribed");
}

TEST_F(SchedulerTest, ATaskFromItsOfferToItsEnd) {
  auto stream = subscribe();
  const auto framework = stream.event().at("subscribed").at("framework_id").at("value").get<std::string>();
  const auto offer = stream.event("OFFERS").at("offers").at("offers").at(0);
  EXPECT_EQ(status_of(call(stream, framework, accept(offer, json::array({task_info(offer, "t1", 1)})))), 202);
  const auto starting = stream.event("UPDATE").at("update").at("status");
  EXPECT_EQ(starting.at("state"), "TASK_STARTING");
  EXPECT_EQ(starting.at("task_id").at("value"), "t1");
  EXPECT_EQ(starting.at("executor_id").at("value"), "t1");
  EXPECT_EQ(starting.at("source"), "SOURCE_EXECUTOR");
  const auto id = task();
  EXPECT_EQ(server_.on_strand([&] { return server_.daemon().state().tasks.at(id).gpus.size(); }), 1u);
  happens(control::event::Started{id, TimePoint{}});
  EXPECT_EQ(status_of(call(stream, framework, acknowledge(starting))), 202);
  const auto running = stream.event("UPDATE").at("update").at("status");
  EXPECT_EQ(running.at("state"), "TASK_RUNNING");
  EXPECT_NE(running.at("uuid"), starting.at("uuid"));
  workload::Ending ending;
  ending.exit_status = 4;
  happens(control::event::Ended{id, ending});
  call(stream, framework, acknowledge(running));
  const auto failed = stream.event("UPDATE").at("update").at("status");
  EXPECT_EQ(failed.at("state"), "TASK_FAILED");
  EXPECT_EQ(failed.at("message"), "Command exited with status 4");

  // It comes back before it has acknowledged: the same again.
  auto again = subscribe(json{
      {"type", "SUBSCRIBE"},
      {"framework_id", {{"value", framework}}},
      {"subscribe",
       {{"framework_info",
         {{"user", "root"}, {"name", "test"}, {"id", {{"value", framework}}}, {"failover_timeout", 60.0}}}}}}
                             .dump());
  EXPECT_EQ(stream.event("ERROR").at("error").at("message"), "Framework failed over");
  EXPECT_EQ(stream.record(), "") << "the old stream ends";
  EXPECT_EQ(again.event().at("subscribed").at("framework_id").at("value"), framework);
  const auto repeated = again.event("UPDATE").at("update").at("status");
  EXPECT_EQ(repeated.at("uuid"), failed.at("uuid"));
  call(again, framework, acknowledge(repeated));
  call(again, framework,
       {{"type", "RECONCILE"}, {"reconcile", {{"tasks", json::array({{{"task_id", {{"value", "t1"}}}}})}}}});
  const auto unknown = again.event("UPDATE").at("update").at("status");
  EXPECT_EQ(unknown.at("state"), "TASK_LOST") << "it no longer says that it knows partitions";
  EXPECT_EQ(unknown.at("reason"), "REASON_RECONCILIATION");
  EXPECT_FALSE(unknown.contains("uuid"));
}

TEST_F(SchedulerTest, WhatCannotRunIsToldSo) {
  auto stream = subscribe();
  const auto framework = stream.event().at("subscribed").at("framework_id").at("value").get<std::string>();
  const auto offer = stream.event("OFFERS").at("offers").at("offers").at(0);
  auto foreign = task_info(offer, "foreign", 0);
  foreign["agent_id"]["value"] = "elsewhere";
  call(stream, framework,
       accept(offer, json::array({task_info(offer, "half", 0.5), task_info(offer, "many", 64), foreign})));
  const auto half = stream.event("UPDATE").at("update").at("status");
  EXPECT_EQ(half.at("state"), "TASK_ERROR");
  EXPECT_EQ(half.at("reason"), "REASON_TASK_INVALID");
  EXPECT_EQ(half.at("source"), "SOURCE_MASTER");
  EXPECT_EQ(half.at("message"),
            "Task uses invalid resources: Invalid 'gpus' resource: The 'gpus' resource must be an unsigned "
            "integer");
  EXPECT_FALSE(half.contains("uuid"));
  EXPECT_THAT(stream.event("UPDATE").at("update").at("status").at("message").get<std::string>(),
              HasSubstr("Task uses more resources gpus:64; cpus:0.5; mem:32 than available "));
  EXPECT_THAT(stream.event("UPDATE").at("update").at("status").at("message").get<std::string>(),
              HasSubstr("Task uses invalid agent elsewhere while agent "));
  call(stream, framework, accept(offer, json::array({task_info(offer, "late", 0)})));
  const auto late = stream.event("UPDATE").at("update").at("status");
  EXPECT_EQ(late.at("state"), "TASK_DROPPED");
  EXPECT_EQ(late.at("reason"), "REASON_INVALID_OFFERS");
}

TEST_F(SchedulerTest, WithoutGpuResourcesThereAreNoOffersOfAGpuMachine) {
  auto blind = subscribe(R"({"type":"SUBSCRIBE","subscribe":{"framework_info":{"user":"root","name":"b"}}})");
  blind.event("HEARTBEAT");
  auto seeing = subscribe();
  const auto offer = seeing.event("OFFERS");
  EXPECT_EQ(offer.at("offers").at("offers").size(), 1u);
  // Nothing but heartbeats: the next thing that it hears is its own end.
  server_.stop();
  EXPECT_THROW(blind.event("OFFERS"), std::exception);
}

TEST_F(SchedulerTest, ProtobufIsSpokenToo) {
  const std::string body(
      "\x10\x01\x1a\x0b\x0a\x09\x0a\x04"
      "root"
      "\x12\x01"
      "n",
      15);
  Subscription stream(server_.socket(), "");
  EXPECT_EQ(status_of(stream.head), 400);
  auto connection = RawConnection::to_unix(server_.socket());
  connection.send(
      fmt::format("POST /api/v1/scheduler HTTP/1.1\r\nHost: x\r\nAccept: application/x-protobuf\r\n"
                  "Content-Type: application/x-protobuf\r\nContent-Length: {}\r\n\r\n{}",
                  body.size(), body));
  const auto answer = connection.receive(std::string("4\r\n2\n\x08\x08\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: application/x-protobuf\r\n"));
  EXPECT_THAT(answer, HasSubstr(std::string("4\r\n2\n\x08\x08\r\n")));
}

}  // namespace
}  // namespace drover::api::mesos

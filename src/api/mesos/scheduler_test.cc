// The scheduler API on the wire: what is sent and received is bytes.

#include "api/mesos/scheduler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/mesos/testing/wire.h"

namespace drover::api::mesos {
namespace {

using api::testing::body_of;
using api::testing::RawConnection;
using api::testing::status_of;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kSubscribe;
using ::testing::MatchesRegex;
using testing::post;
using testing::Subscription;
using SchedulerTest = testing::WireTest;

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
              server_.daemon().state_.journal_id + "-0000");
  EXPECT_EQ(first.at("subscribed").at("master_info").at("id"), server_.daemon().state_.journal_id);
  EXPECT_EQ(first.at("subscribed").at("master_info").at("version"), "1.12.0");
  EXPECT_FALSE(first.at("subscribed").at("master_info").contains("capabilities"))
      << "mesos-go ends its stream at one that it does not know";
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
            R"({"name":"rack","text":{"value":"7"},"type":"TEXT"}])")
      << "also what looks like a number";
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

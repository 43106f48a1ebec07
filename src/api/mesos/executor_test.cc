// The executor API on the wire: what is sent and received is bytes.

#include "api/mesos/executor.h"

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
using ::testing::HasSubstr;
using testing::Subscription;

constexpr const char* kSecretOfRoot = "0123456789abcdef";

const ExecutorTokens& tokens() {
  static const ExecutorTokens made(std::string(64, 'k'));
  return made;
}

ServerOptions executor_options() {
  ServerOptions options;
  options.listen = ListenAddress{"127.0.0.1", 0};
  options.credentials = {{"root", kSecretOfRoot}};
  options.executor_tokens = tokens();
  options.limits.wrong_secret_pause = std::chrono::milliseconds(1);
  return options;
}

class ExecutorTest : public testing::WireTest {
 protected:
  ExecutorTest() : testing::WireTest(executor_options()) {}

  json with_executor(json task, double cpus_of_executor = 0.1) const {
    task.erase("command");
    task["executor"] = {
        {"executor_id", {{"value", "e"}}},
        {"command", {{"value", "./executor"}}},
        {"resources", {{{"name", "cpus"}, {"type", "SCALAR"}, {"scalar", {{"value", cpus_of_executor}}}}}}};
    return task;
  }
  /// Launches these tasks on the executor, whose container runs then.
  void launch(std::vector<std::string> names) {
    const auto offer = offer_of(stream_);
    json infos = json::array();
    for (const auto& name : names) infos.push_back(with_executor(task_info(offer, name, 0)));
    ASSERT_EQ(status_of(call(stream_, framework_, accept(offer, infos))), 202);
    container_ = task();
    happens(control::event::Started{container_, TimePoint(std::chrono::seconds(1)), std::nullopt, ""});
  }
  std::string bytes(json body, const std::string& authorization, const std::string& path) const {
    body["framework_id"] = {{"value", framework_}};
    if (!body.contains("executor_id")) body["executor_id"] = {{"value", "e"}};
    const auto text = body.dump();
    return fmt::format(
        "POST {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
        "Content-Length: {}\r\nAuthorization: {}\r\n\r\n{}",
        path, text.size(), authorization, text);
  }
  RawConnection connect() { return RawConnection::to_loopback(server_.server().tcp_address()->port); }
  std::string token() const { return "Bearer " + tokens().of(container_); }
  std::string say(const json& body, const std::string& authorization,
                  const std::string& path = "/api/v1/executor") {
    auto connection = connect();
    connection.send(bytes(body, authorization, path));
    return connection.receive();
  }
  std::string say(const json& body) { return say(body, token()); }
  Subscription come(json subscribe = json::object()) {
    return {connect(), bytes({{"type", "SUBSCRIBE"}, {"subscribe", std::move(subscribe)}}, token(),
                             "/slave(1)/api/v1/executor")};
  }
  static json update(const std::string& task, const std::string& state, const std::string& uuid) {
    return {{"type", "UPDATE"},
            {"update",
             {{"status",
               {{"task_id", {{"value", task}}},
                {"state", state},
                {"source", "SOURCE_EXECUTOR"},
                {"uuid", uuid},
                {"data", "aGk="},
                {"message", "as it said"}}}}}};
  }

  static constexpr const char* kUuid = "AAECAwQFBgcICQoLDA0ODw==";
  Subscription stream_ = subscribe();
  std::string framework_ = id_of(stream_);
  std::string container_;
};

TEST_F(ExecutorTest, ItIsToldItsTasksAndWhatItSaysReachesItsFramework) {
  launch({"a", "b"});
  auto executor = come();
  EXPECT_THAT(executor.head, HasSubstr("HTTP/1.1 200 OK\r\n"));
  const auto first = executor.event();
  ASSERT_EQ(first.at("type"), "SUBSCRIBED");
  const auto& subscribed = first.at("subscribed");
  EXPECT_EQ(subscribed.at("executor_info").at("executor_id").at("value"), "e");
  EXPECT_EQ(subscribed.at("framework_info").at("id").at("value"), framework_);
  EXPECT_TRUE(subscribed.at("agent_info").contains("id"));
  EXPECT_EQ(subscribed.at("container_id").at("value"), container_);
  for (const auto* name : {"a", "b"}) {
    const auto told = executor.event();
    EXPECT_EQ(told.at("type"), "LAUNCH");
    EXPECT_EQ(told.at("launch").at("task").at("task_id").at("value"), name);
  }
  EXPECT_EQ(status_of(say(update("a", "TASK_RUNNING", kUuid))), 202);
  const auto acknowledged = executor.event();
  EXPECT_EQ(acknowledged.at("type"), "ACKNOWLEDGED");
  EXPECT_EQ(acknowledged.at("acknowledged").at("uuid"), kUuid);
  const auto told = status(stream_);
  EXPECT_EQ(told.at("state"), "TASK_RUNNING");
  EXPECT_EQ(told.at("data"), "aGk=");
  EXPECT_EQ(told.at("message"), "as it said");
  EXPECT_EQ(told.at("uuid"), kUuid);
  EXPECT_EQ(told.at("executor_id").at("value"), "e");
  call(stream_, framework_, acknowledge(told));
  EXPECT_EQ(status_of(say(update("a", "TASK_RUNNING", kUuid))), 202) << "once more, late";
  EXPECT_EQ(executor.event().at("type"), "ACKNOWLEDGED");

  call(stream_, framework_, {{"type", "KILL"}, {"kill", {{"task_id", {{"value", "b"}}}}}});
  EXPECT_EQ(executor.event("KILL").at("kill").at("task_id").at("value"), "b");
  happens(control::event::Ended{container_, workload::Ending{}});
  const auto lost = status(stream_);
  EXPECT_EQ(lost.at("reason"), "REASON_EXECUTOR_TERMINATED");
  EXPECT_EQ(lost.at("source"), "SOURCE_AGENT");
}

TEST_F(ExecutorTest, MessagesGoBothWays) {
  launch({"a"});
  auto executor = come();
  executor.event("LAUNCH");
  call(stream_, framework_,
       {{"type", "MESSAGE"},
        {"message", {{"agent_id", {{"value", "S0"}}}, {"executor_id", {{"value", "e"}}}, {"data", "aGk="}}}});
  EXPECT_EQ(executor.event().at("message").at("data"), "aGk=");
  EXPECT_EQ(status_of(say({{"type", "MESSAGE"}, {"message", {{"data", "eW8="}}}})), 202);
  const auto message = stream_.event("MESSAGE").at("message");
  EXPECT_EQ(message.at("data"), "eW8=");
  EXPECT_EQ(message.at("executor_id").at("value"), "e");
}

TEST_F(ExecutorTest, ItIsKnownByItsTokenAlone) {
  launch({"a"});
  const json subscribing = {{"type", "SUBSCRIBE"}, {"subscribe", json::object()}};
  const auto root = std::string("Bearer ") + kSecretOfRoot;
  EXPECT_EQ(status_of(say(subscribing, root)), 401) << "root is no executor";
  EXPECT_THAT(body_of(say(subscribing, root)), HasSubstr("MESOS_EXECUTOR_AUTHENTICATION_TOKEN"));
  EXPECT_EQ(status_of(say(subscribing, "Bearer executor." + container_ + "." + std::string(64, '0'))), 401);
  EXPECT_EQ(status_of(say(subscribing, "Bearer " + tokens().of("0123456789ab"))), 401) << "of no executor";
  auto other = subscribing;
  other["executor_id"] = {{"value", "other"}};
  EXPECT_EQ(status_of(say(other, token())), 403);
  for (const auto* path : {"/v1/tasks", "/api/v1/scheduler", "/api/v1", "/v2/apps"})
    EXPECT_EQ(status_of(say(subscribing, token(), path)), 403) << path;
  EXPECT_EQ(body_of(say(update("a", "TASK_RUNNING", kUuid))), "Executor is not subscribed");
  auto unknown = connect();
  unknown.send("POST /api/v1/executor HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const auto refused = unknown.receive();
  EXPECT_EQ(status_of(refused), 401);
  EXPECT_THAT(refused, HasSubstr("MESOS_EXECUTOR_AUTHENTICATION_TOKEN"));
  happens(control::event::Ended{container_, workload::Ending{}});
  EXPECT_EQ(status_of(say(subscribing, token())), 401) << "it has ended";
}

TEST_F(ExecutorTest, OperatorsSeeItAndItsTasks) {
  launch({"a", "b"});
  auto executor = come();
  executor.event("LAUNCH");
  say(update("a", "TASK_RUNNING", kUuid));
  const auto agent = json::parse(body_of(get("/slave(1)/state")));
  const auto& seen = agent.at("frameworks").at(0).at("executors");
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].at("id"), "e");
  EXPECT_EQ(seen[0].at("type"), "CUSTOM");
  EXPECT_EQ(seen[0].at("container"), container_);
  EXPECT_EQ(seen[0].at("resources").at("cpus"), 1.1);
  ASSERT_EQ(seen[0].at("tasks").size(), 1u);
  EXPECT_EQ(seen[0].at("tasks")[0].at("id"), "a");
  EXPECT_EQ(seen[0].at("queued_tasks")[0].at("id"), "b");
  const auto state = json::parse(body_of(get("/state")));
  const auto& framework = state.at("frameworks").at(0);
  ASSERT_EQ(framework.at("tasks").size(), 2u);
  EXPECT_EQ(framework.at("tasks")[0].at("executor_id"), "e");
  EXPECT_EQ(framework.at("used_resources").at("cpus"), 1.1);
  const auto containers = json::parse(body_of(get("/containers")));
  ASSERT_EQ(containers.size(), 1u);
  EXPECT_EQ(containers[0].at("executor_id"), "e");
  EXPECT_EQ(containers[0].at("container_id"), container_);
}

class PodExecutorTest : public testing::WireTest {
 protected:
  explicit PodExecutorTest(std::string endpoint = "plane.drover.svc:8080")
      : testing::WireTest([&] {
          auto options = executor_options();
          options.pods_endpoint = std::move(endpoint);
          return options;
        }()) {
    server_.on_strand([this] { server_.daemon().state_.placed_by_others = true; });
    std::vector<placement::Node> nodes;
    for (const auto* name : {"n1", "n2"}) {
      nodes.push_back({.name = name, .milli_cpus = 40'000, .memory_bytes = 8ULL << 30});
      nodes.back().attributes = {{"hostname", {name}}};
    }
    happens(control::event::NodesChanged{std::make_shared<const std::vector<placement::Node>>(nodes)});
  }
  /// On an executor of a network of its own.
  static json with_pod(json task) {
    task.erase("command");
    task["executor"] = {
        {"executor_id", {{"value", "e"}}},
        {"command", {{"value", "./executor"}}},
        {"container", {{"type", "DOCKER"}, {"docker", {{"image", "x"}, {"network", "BRIDGE"}}}}}};
    return task;
  }
  /// What a pod says by this name of the daemon's.
  int status_by(const std::string& host) {
    auto connection = RawConnection::to_loopback(server_.server().tcp_address()->port);
    connection.send(fmt::format("GET /health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", host));
    return status_of(connection.receive());
  }
};

TEST_F(PodExecutorTest, EachAgentHasItsOwnAndItIsToldWhereTheDaemonIs) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  const auto offers = stream.event("OFFERS").at("offers").at("offers");
  ASSERT_EQ(offers.size(), 2u);
  for (const auto& offer : offers)
    call(stream, framework,
         accept(offer, {with_pod(task_info(offer, "on-" + offer.at("hostname").get<std::string>(), 0))}));
  server_.on_strand([this] {
    const auto& state = server_.daemon().state();
    ASSERT_EQ(state.executors.size(), 2u);
    for (const auto& [key, executor] : state.executors) {
      const auto& task = state.tasks.at(executor.id).task;
      const auto& environment = *task.environment;
      EXPECT_EQ(task.resources.attributes.at(0).any_of, std::vector{executor.host});
      EXPECT_EQ(environment.at("MESOS_AGENT_ENDPOINT"), "plane.drover.svc:8080");
      EXPECT_EQ(environment.at("MESOS_AGENT_ID"), state.journal_id + "-S-" + executor.host);
      EXPECT_FALSE(environment.contains("LIBPROCESS_IP"));
    }
  });
  const auto state = json::parse(body_of(get("/state")));
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& task : state.at("frameworks").at(0).at("tasks"))
    seen.emplace(task.at("id"), task.at("slave_id"));
  const auto journal = server_.on_strand([this] { return server_.daemon().state().journal_id; });
  EXPECT_THAT(seen, ::testing::ElementsAre(std::pair("on-n1", journal + "-S-n1"),
                                           std::pair("on-n2", journal + "-S-n2")));
  const auto agent = json::parse(body_of(get("/slave(1)/state")));
  EXPECT_EQ(agent.at("frameworks").at(0).at("executors").size(), 2u);
}

TEST_F(PodExecutorTest, ItIsCalledByThatNameAndThatPortAlone) {
  EXPECT_EQ(status_by("plane.drover.svc:8080"), 200);
  EXPECT_EQ(status_by("Plane.drover.svc:8080"), 200);
  EXPECT_EQ(status_by("plane.drover.svc:81"), 403);
  EXPECT_EQ(status_by("plane.drover.svc"), 403);
}

class UnreachablePodTest : public PodExecutorTest {
 protected:
  UnreachablePodTest() : PodExecutorTest("") {}
};

TEST_F(UnreachablePodTest, ExecutorsAreRefusedInWords) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  const auto offer = offer_of(stream);
  call(stream, framework, accept(offer, {with_pod(task_info(offer, "t", 0))}));
  EXPECT_THAT(status(stream).at("message").get<std::string>(), HasSubstr("--executor-endpoint"));
  EXPECT_EQ(status_by(""), 403);
}

TEST_F(ExecutorTest, WhatItCannotHaveIsSaid) {
  const auto offer = offer_of(stream_);
  auto bridged = with_executor(task_info(offer, "bridged", 0));
  bridged["executor"]["container"] = {{"type", "DOCKER"},
                                      {"docker", {{"image", "x"}, {"network", "BRIDGE"}}}};
  auto both = with_executor(task_info(offer, "both", 0));
  both["executor"]["executor_id"]["value"] = "e2";
  both["command"] = {{"value", "true"}};
  auto others = with_executor(task_info(offer, "others", 0));
  others["executor"]["executor_id"]["value"] = "e3";
  others["executor"]["framework_id"] = {{"value", "somebody"}};
  call(stream_, framework_, accept(offer, json::array({bridged, both, others})));
  const std::map<std::string, std::string> words = {
      {"bridged", "ask for the network HOST"}, {"both", "not both"}, {"others", "invalid FrameworkID"}};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto refused = status(stream_);
    EXPECT_EQ(refused.at("state"), "TASK_ERROR");
    EXPECT_THAT(refused.at("message").get<std::string>(),
                HasSubstr(words.at(refused.at("task_id").at("value").get<std::string>())));
  }
}

}  // namespace
}  // namespace drover::api::mesos

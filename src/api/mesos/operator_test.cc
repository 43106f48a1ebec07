// What tools read of a Mesos master and agent, on the wire: what is not launched by a framework is there too.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/mesos/testing/operators.h"

namespace drover::api::mesos {
namespace {

using api::testing::body_of;
using api::testing::status_of;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::kApp;
using ::testing::MatchesRegex;
using testing::OperatorTest;
using ::testing::StartsWith;
using testing::StrangerTest;

TEST_F(OperatorTest, AnAppIsATaskOfMarathon) {
  make_app(kApp);
  const auto id = read("/v2/apps/prod/web/tasks").at("tasks").at(0).at("id");
  server_.start_all();
  const auto marathon = framework("/master/state.json", "marathon");
  EXPECT_EQ(marathon.at("id"), read("/v2/info").at("frameworkId"));
  EXPECT_EQ(marathon.at("active"), true);
  EXPECT_EQ(marathon.at("user"), "root");
  EXPECT_NE(marathon.at("hostname"), "");
  EXPECT_EQ(marathon.at("used_resources").at("cpus"), 0.5);
  const auto task = marathon.at("tasks").at(0);
  EXPECT_EQ(task.at("id"), id);
  EXPECT_EQ(task.at("name"), "web.prod");
  EXPECT_EQ(task.at("framework_id"), marathon.at("id"));
  EXPECT_EQ(task.at("executor_id"), "");
  EXPECT_EQ(task.at("state"), "TASK_RUNNING");
  EXPECT_EQ(task.at("statuses").at(0).at("state"), "TASK_RUNNING");
  EXPECT_EQ(task.at("slave_id"), read("/slaves").at("slaves").at(0).at("id"));
  EXPECT_EQ(task.at("labels").dump(), R"([{"key":"tier","value":"front"}])");
  const auto app_task = read("/v2/tasks").at("tasks").at(0);
  const auto& ports = app_task.at("ports");
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_EQ(task.at("discovery").dump(),
            fmt::format(R"({{"name":"web.prod","ports":{{"ports":[)"
                        R"({{"name":"http","number":{0},"protocol":"tcp"}},)"
                        R"({{"number":{1},"protocol":"tcp"}},{{"number":{1},"protocol":"udp"}}]}},)"
                        R"("visibility":"FRAMEWORK"}})",
                        ports[0].dump(), ports[1].dump()));
  const std::string range = task.at("resources").at("ports");
  EXPECT_THAT(range, StartsWith("["));
  EXPECT_THAT(range, HasSubstr(ports[0].dump()));
  EXPECT_EQ(read("/tasks").at("tasks").at(0), task);
  EXPECT_EQ(framework("/state-summary", "marathon").at("TASK_RUNNING"), 1);
}

TEST_F(OperatorTest, TheSandboxOfAnInstanceIsFoundByTheAgent) {
  make_app(kApp);
  server_.start_all();
  const auto task = framework("/state", "marathon").at("tasks").at(0);
  const auto agent = framework("/slave(1)/state", "marathon");
  ASSERT_EQ(agent.at("executors").size(), 1u);
  const auto executor = agent.at("executors").at(0);
  EXPECT_EQ(executor.at("id"), task.at("id"));
  EXPECT_EQ(executor.at("tasks").at(0), task);
  EXPECT_EQ(executor.at("directory"), task.at("directory"));
  EXPECT_EQ(executor.at("directory"),
            fmt::format("/slaves/{}/frameworks/{}/executors/{}/runs/{}",
                        task.at("slave_id").get<std::string>(), task.at("framework_id").get<std::string>(),
                        task.at("id").get<std::string>(), executor.at("container").get<std::string>()));
  for (const auto* path :
       {"/containers", "/monitor/statistics", "/monitor/statistics.json", "/slave(1)/monitor/statistics"}) {
    const auto containers = read(path);
    ASSERT_EQ(containers.size(), 1u) << path;
    EXPECT_EQ(containers.at(0).at("executor_id"), task.at("id"));
    EXPECT_EQ(containers.at(0).at("framework_id"), task.at("framework_id"));
    const auto& statistics = containers.at(0).at("statistics");
    EXPECT_EQ(statistics.at("cpus_limit"), 0.5);
    EXPECT_EQ(statistics.at("mem_limit_bytes"), 16 << 20);
    EXPECT_EQ(statistics.at("timestamp"), 1'700'000'000.0);
    EXPECT_FALSE(statistics.contains("mem_rss_bytes")) << "it is not measured, and so not 0";
  }
}

TEST_F(OperatorTest, TheMasterTellsOfSandboxesToo) {
  make_app(kApp);
  server_.start_all();
  const auto marathon = framework("/state.json", "marathon");
  ASSERT_EQ(marathon.at("executors").size(), 1u);
  const auto& executor = marathon.at("executors").at(0);
  EXPECT_EQ(executor.at("id"), marathon.at("tasks").at(0).at("id"));
  EXPECT_EQ(executor.at("directory"), marathon.at("tasks").at(0).at("directory"));
  EXPECT_EQ(executor.at("tasks").at(0).at("id"), marathon.at("tasks").at(0).at("id"));
  EXPECT_EQ(marathon.at("completed_executors"), json::array());
  happens(control::event::Ended{
      server_.on_strand([this] { return *server_.daemon().state().active.begin(); }), {}});
  EXPECT_EQ(framework("/state.json", "marathon").at("completed_executors").size(), 1u);
}

TEST_F(OperatorTest, ASlashBehindItAndAnyMethodDoNotMatter) {
  for (const auto* path : {"/master/frameworks/", "/state/", "/slaves/", "/metrics/snapshot/", "/tasks//"})
    EXPECT_EQ(status_of(get(path)), 200) << path;
  EXPECT_EQ(status_of(form("/tasks/?task_id=x", "a=b")), 200);
  EXPECT_EQ(status_of(form("/quota", "{}")), 405) << "what cannot be set is not taken";
}

TEST_F(OperatorTest, TasksAreListedAsTheyAreAskedFor) {
  add_ended(150);
  const auto ids = [this](const std::string& query) {
    std::vector<std::string> found;
    const auto answer = read("/tasks" + query);
    for (const auto& task : answer.at("tasks")) found.push_back(task.at("id"));
    return found;
  };
  EXPECT_EQ(ids("").size(), 100u);
  EXPECT_EQ(ids("?limit=none").size(), 100u);
  EXPECT_EQ(ids("").front(), "old.149");
  EXPECT_EQ(ids("?limit=1000").size(), 150u);
  EXPECT_THAT(ids("?limit=2&offset=1&order=asc"), ElementsAre("old.1", "old.2"));
  EXPECT_EQ(ids("?offset=1000").size(), 0u);
  EXPECT_THAT(ids("?task_id=old.7"), ElementsAre("old.7"));
  const auto marathon = framework("/state", "marathon").at("id").get<std::string>();
  EXPECT_EQ(ids("?framework_id=nope").size(), 0u);
  EXPECT_EQ(ids("?framework_id=" + marathon).size(), 100u);
  EXPECT_EQ(read("/frameworks?framework_id=nope").at("frameworks"), json::array());
  EXPECT_EQ(read("/frameworks?framework_id=" + marathon).at("frameworks").size(), 1u);
  EXPECT_EQ(read("/slaves?slave_id=nope").at("slaves"), json::array());
  const auto agent = read("/slaves").at("slaves").at(0).at("id").get<std::string>();
  EXPECT_EQ(read("/slaves?slave_id=" + agent).at("slaves").size(), 1u);
}

TEST_F(OperatorTest, SandboxesAreListedByTheirPaths) {
  EXPECT_EQ(body_of(get("/files/debug")), "{}");
  make_app(kApp);
  const auto task = framework("/state", "marathon").at("tasks").at(0);
  const auto own = server_.on_strand([this] { return *server_.daemon().state().active.begin(); });
  const json expected = {{task.at("directory").get<std::string>(), server_.daemon().sandbox_of(own)}};
  EXPECT_EQ(read("/files/debug"), expected);
  EXPECT_EQ(read("/files/debug.json"), expected);
}

TEST_F(StrangerTest, OthersSeeNothingOfIt) {
  make_app(kApp);
  auto stream = subscribe();
  id_of(stream);
  ASSERT_EQ(framework("/state", "marathon").at("tasks").size(), 1u);
  const auto frameworks = read_as_nobody("/state").at("frameworks");
  ASSERT_EQ(frameworks.size(), 2u) << "those that everybody has";
  for (const auto& one : frameworks) {
    EXPECT_EQ(one.at("tasks"), json::array());
    EXPECT_EQ(one.at("used_resources").at("cpus"), 0.0);
  }
  const auto on_agent = read_as_nobody("/slave(1)/state").at("frameworks");
  for (const auto& one : on_agent) EXPECT_EQ(one.at("executors"), json::array());
  EXPECT_EQ(read_as_nobody("/tasks").at("tasks"), json::array());
  EXPECT_EQ(read_as_nobody("/containers"), json::array());
  EXPECT_EQ(read_as_nobody("/files/debug"), json::object());
}

TEST_F(OperatorTest, ARunIsATaskOfChronos) {
  const auto answer = ask(
      "POST /v1/scheduler/iso8601 HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: "
      "application/json\r\n"
      "Content-Length: 98\r\n\r\n"
      R"({"name":"nightly","command":"true","cpus":0.25,"mem":16, "schedule":"R/2030-01-01T00:00:00Z/P1D" })");
  ASSERT_EQ(status_of(answer), 204) << answer;
  EXPECT_EQ(framework("/state", "chronos").at("tasks"), json::array());
  ask("PUT /v1/scheduler/job/nightly?arguments=/etc/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
  const auto chronos = framework("/state", "chronos");
  ASSERT_EQ(chronos.at("tasks").size(), 1u);
  const auto& task = chronos.at("tasks").at(0);
  EXPECT_THAT(task.at("id").get<std::string>(), MatchesRegex("ct:[0-9]+:0:nightly:/etc/x"));
  EXPECT_EQ(task.at("name"), "ChronosTask:nightly");
  EXPECT_FALSE(task.contains("discovery"));
  const std::string folder = task.at("directory");
  EXPECT_EQ(std::ranges::count(folder, '/'), 8) << "slashes of the arguments are not among them: " << folder;
  EXPECT_EQ(framework("/state", "marathon").at("tasks"), json::array());
}

TEST_F(OperatorTest, WhatWaitsOrHasEndedIsNotRunning) {
  make_app(R"({"id":"/job","cmd":"true","cpus":40})");
  make_app(R"({"id":"/waits","cmd":"sleep 9","cpus":40})");
  server_.start_all();
  ASSERT_EQ(framework("/state", "marathon").at("tasks").size(), 1u) << "of the other there is no task yet";
  const auto id = framework("/state", "marathon").at("tasks").at(0).at("id");
  const auto own = server_.on_strand([this] { return *server_.daemon().state().active.begin(); });
  happens(control::event::Ended{own, {}});
  const auto marathon = framework("/state", "marathon");
  const auto& ended = marathon.at("completed_tasks");
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended.at(0).at("id"), id);
  EXPECT_EQ(ended.at(0).at("state"), "TASK_FINISHED");
}

TEST_F(OperatorTest, OfVeryManyThatHaveEndedTheLastAreShown) {
  add_ended(1200);
  const auto marathon = framework("/state", "marathon");
  const auto& ended = marathon.at("completed_tasks");
  EXPECT_EQ(ended.size(), 1000u);
  for (const auto& task : ended) EXPECT_GE(task.at("statuses").at(0).at("timestamp"), 200.0);
}

TEST_F(OperatorTest, AFrameworkCannotTakeThePlaceOfMarathon) {
  const auto id = framework("/state", "marathon").at("id");
  auto body = json::parse(testing::kSubscribe);
  body["framework_id"] = {{"value", id}};
  body["subscribe"]["framework_info"]["id"] = {{"value", id}};
  auto stream = subscribe(body.dump());
  EXPECT_THAT(stream.event("ERROR").at("error").at("message").get<std::string>(),
              EndsWith("is part of this master"));
}

TEST_F(OperatorTest, AFrameworkIsTornDownByAForm) {
  auto stream = subscribe();
  const auto id = id_of(stream);
  for (const auto& [body, text] : {std::pair("", "Missing 'frameworkId' query parameter in the request body"),
                                   std::pair("frameworkId=x", "No framework found with specified ID")}) {
    const auto answer = form("/master/teardown", body);
    EXPECT_EQ(status_of(answer), 400);
    EXPECT_EQ(body_of(answer), text);
  }
  const auto marathon = framework("/state", "marathon").at("id").get<std::string>();
  EXPECT_EQ(status_of(form("/teardown", "frameworkId=" + marathon)), 400) << "it ends with the daemon";
  EXPECT_EQ(status_of(get("/master/teardown")), 405);
  const auto answer = form("/teardown", "frameworkId=" + id);
  EXPECT_EQ(status_of(answer), 200) << answer;
  EXPECT_EQ(body_of(answer), "");
  EXPECT_EQ(read("/state").at("completed_frameworks").at(0).at("id"), id);
  EXPECT_EQ(status_of(form("/teardown", "frameworkId=" + id)), 400) << "it is gone";
}

TEST_F(OperatorTest, MetricsAreTrueCounts) {
  make_app(kApp);
  auto metrics = read("/metrics/snapshot");
  EXPECT_EQ(metrics.at("slave/executors_registering"), 1.0);
  EXPECT_EQ(metrics.at("slave/executors_running"), 0.0);
  server_.start_all();
  server_.on_strand([this] {
    server_.daemon().now_ += std::chrono::seconds(90);
    return true;
  });
  metrics = read("/metrics/snapshot");
  EXPECT_EQ(metrics.at("master/uptime_secs"), 90.0);
  EXPECT_EQ(metrics.at("slave/uptime_secs"), 90.0);
  EXPECT_EQ(metrics.at("slave/registered"), 1.0);
  EXPECT_EQ(metrics.at("slave/tasks_running"), 1.0);
  EXPECT_EQ(metrics.at("slave/executors_running"), 1.0);
  EXPECT_EQ(metrics.at("slave/executors_registering"), 0.0);
  EXPECT_EQ(metrics.at("slave/frameworks_active"), 1.0);
  EXPECT_GE(metrics.at("system/cpus_total").get<double>(), 1.0);
  EXPECT_GT(metrics.at("system/mem_total_bytes").get<double>(), 0.0);
  EXPECT_TRUE(metrics.contains("system/load_15min"));
  const auto system = read("/system/stats.json");
  EXPECT_EQ(system.at("cpus_total"), metrics.at("system/cpus_total"));
  EXPECT_EQ(system.at("mem_total_bytes"), metrics.at("system/mem_total_bytes"));
  for (const auto* name : {"cpus_total", "mem_total_bytes", "mem_free_bytes"})
    EXPECT_TRUE(system.at(name).is_number_integer()) << name;
  EXPECT_TRUE(system.at("avg_load_1min").is_number_float());
  for (const auto* name : {"start_time", "elected_time"})
    EXPECT_EQ(read("/state").at(name), 1'700'000'000.0) << name;
  EXPECT_EQ(read("/slaves").at("slaves").at(0).at("registered_time"), 1'700'000'000.0);
}

TEST_F(OperatorTest, WhatIsNotKeptIsEmpty) {
  EXPECT_EQ(body_of(get("/quota")), R"({"infos":[]})");
  EXPECT_EQ(body_of(get("/weights")), "[]");
  for (const auto* path : {"/maintenance/schedule", "/master/maintenance/status"})
    EXPECT_EQ(body_of(get(path)), "{}");
  EXPECT_EQ(status_of(ask(testing::post(testing::kSubscribe.substr(1), "", "/api/v1/scheduler/"))), 400)
      << "the same call as without the slash";
}

}  // namespace
}  // namespace drover::api::mesos

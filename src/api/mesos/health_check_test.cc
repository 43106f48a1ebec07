#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/mesos/protobuf_json.h"
#include "api/mesos/task_info.h"

namespace drover::api::mesos {
namespace {

using nlohmann::json;
using std::chrono::seconds;

Result<std::optional<workload::HealthCheck>> read_health(const json& check, const workload::Task& task = {}) {
  v1::TaskInfo info;
  EXPECT_TRUE(from_json(
      {{"name", "t"}, {"task_id", {{"value", "t"}}}, {"agent_id", {{"value", "a"}}}, {"health_check", check}},
      info));
  return read_health_check(info, task);
}

std::string health_mistake(const json& check, const workload::Task& task = {}) {
  const auto found = read_health(check, task);
  return found ? "" : found.error().message;
}

TEST(HealthCheck, OfACommandHasTheDefaultsOfMesos) {
  const auto check = read_health({{"type", "COMMAND"}, {"command", {{"value", "test -e up"}}}});
  ASSERT_TRUE(check && *check);
  EXPECT_EQ((*check)->kind, workload::CheckKind::kCommand);
  EXPECT_EQ((*check)->command, (std::vector<std::string>{"/bin/sh", "-c", "test -e up"}));
  EXPECT_EQ((*check)->delay, seconds(15));
  EXPECT_EQ((*check)->interval, seconds(10));
  EXPECT_EQ((*check)->timeout, seconds(20));
  EXPECT_EQ((*check)->grace_period, seconds(10));
  EXPECT_EQ((*check)->max_consecutive_failures, 3);
  EXPECT_FALSE(read_health(nullptr).value());
}

TEST(HealthCheck, GoesToThePortOfTheMachine) {
  auto check =
      read_health({{"type", "HTTP"}, {"http", {{"port", 31000}, {"scheme", "https"}, {"path", "/up"}}}});
  ASSERT_TRUE(check && *check);
  EXPECT_EQ((*check)->kind, workload::CheckKind::kHttps);
  EXPECT_EQ((*check)->port, 31000);
  EXPECT_EQ((*check)->path, "/up");

  workload::Task bridged;
  bridged.network.mode = workload::NetworkMode::kBridge;
  workload::Port port;
  port.container_port = 80;
  port.host_port = 31005;
  bridged.network.ports = {{}, port};
  check = read_health({{"type", "TCP"}, {"tcp", {{"port", 80}}}}, bridged);
  ASSERT_TRUE(check && *check);
  EXPECT_EQ((*check)->port, 0);
  EXPECT_EQ((*check)->port_index, 1);
  EXPECT_NE(health_mistake({{"type", "TCP"}, {"tcp", {{"port", 81}}}}, bridged), "");
}

TEST(HealthCheck, MistakesAreToldInTheWordsOfMesos) {
  const std::string prefix = "Task uses invalid health check: ";
  EXPECT_EQ(health_mistake(json::object()), prefix + "HealthCheck must specify 'type'");
  EXPECT_EQ(health_mistake({{"type", "COMMAND"}}),
            prefix + "Expecting 'command' to be set for COMMAND health check");
  EXPECT_EQ(health_mistake({{"type", "HTTP"}}), prefix + "Expecting 'http' to be set for HTTP health check");
  EXPECT_EQ(health_mistake({{"type", "TCP"}}), prefix + "Expecting 'tcp' to be set for TCP health check");
  EXPECT_EQ(health_mistake({{"type", "TCP"}, {"tcp", {{"port", 1}}}, {"delay_seconds", -1.0}}),
            prefix + "Expecting 'delay_seconds' to be non-negative");
  EXPECT_EQ(health_mistake({{"type", "HTTP"}, {"http", {{"port", 1}, {"path", "up"}}}}),
            prefix + "The path 'up' of HTTP health check must start with '/'");
  EXPECT_EQ(health_mistake({{"type", "TCP"}, {"tcp", {{"port", 70000}}}}), prefix + "'port' is 70000");
}

TEST(Check, IsReadAsOneOfHealthIs) {
  const auto read = [](const json& check) {
    v1::TaskInfo info;
    EXPECT_TRUE(from_json(
        {{"name", "t"}, {"task_id", {{"value", "t"}}}, {"agent_id", {{"value", "a"}}}, {"check", check}},
        info));
    return read_check(info, {});
  };
  const auto command =
      read({{"type", "COMMAND"}, {"command", {{"command", {{"value", "exit 3"}}}}}, {"interval_seconds", 2}});
  ASSERT_TRUE(command && *command);
  EXPECT_EQ((*command)->kind, workload::CheckKind::kCommand);
  EXPECT_EQ((*command)->command, (std::vector<std::string>{"/bin/sh", "-c", "exit 3"}));
  EXPECT_EQ((*command)->delay, seconds(15));
  EXPECT_EQ((*command)->interval, seconds(2));
  const auto http =
      read({{"type", "HTTP"}, {"http", {{"port", 31000}, {"path", "/up"}}}, {"delay_seconds", 0.0}});
  ASSERT_TRUE(http && *http);
  EXPECT_EQ((*http)->kind, workload::CheckKind::kHttp);
  EXPECT_EQ((*http)->port, 31000);
  EXPECT_EQ((*http)->path, "/up");
  EXPECT_EQ((*http)->delay, seconds(0));
  EXPECT_EQ(read({{"type", "TCP"}, {"tcp", {{"port", 31000}}}}).value()->kind, workload::CheckKind::kTcp);
  EXPECT_FALSE(read(nullptr).value());
  EXPECT_EQ(read(json::object()).error().message, "Task uses invalid check: CheckInfo must specify 'type'");
  EXPECT_EQ(read({{"type", "TCP"}}).error().message,
            "Task uses invalid check: Expecting 'tcp' to be set for TCP check");
}

}  // namespace
}  // namespace drover::api::mesos

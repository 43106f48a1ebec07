#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/mesos/protobuf_json.h"
#include "api/mesos/task_info.h"

namespace drover::api::mesos {
namespace {

using nlohmann::json;
using std::chrono::seconds;

Result<std::optional<workload::HealthCheck>> read_check(const json& check, const workload::Task& task = {}) {
  v1::TaskInfo info;
  EXPECT_TRUE(from_json(
      {{"name", "t"}, {"task_id", {{"value", "t"}}}, {"agent_id", {{"value", "a"}}}, {"health_check", check}},
      info));
  return read_health_check(info, task);
}

std::string check_mistake(const json& check, const workload::Task& task = {}) {
  const auto found = read_check(check, task);
  return found ? "" : found.error().message;
}

TEST(HealthCheck, OfACommandHasTheDefaultsOfMesos) {
  const auto check = read_check({{"type", "COMMAND"}, {"command", {{"value", "test -e up"}}}});
  ASSERT_TRUE(check && *check);
  EXPECT_EQ((*check)->kind, workload::CheckKind::kCommand);
  EXPECT_EQ((*check)->command, (std::vector<std::string>{"/bin/sh", "-c", "test -e up"}));
  EXPECT_EQ((*check)->delay, seconds(15));
  EXPECT_EQ((*check)->interval, seconds(10));
  EXPECT_EQ((*check)->timeout, seconds(20));
  EXPECT_EQ((*check)->grace_period, seconds(10));
  EXPECT_EQ((*check)->max_consecutive_failures, 3);
  EXPECT_FALSE(read_check(nullptr).value());
}

TEST(HealthCheck, GoesToThePortOfTheMachine) {
  auto check =
      read_check({{"type", "HTTP"}, {"http", {{"port", 31000}, {"scheme", "https"}, {"path", "/up"}}}});
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
  check = read_check({{"type", "TCP"}, {"tcp", {{"port", 80}}}}, bridged);
  ASSERT_TRUE(check && *check);
  EXPECT_EQ((*check)->port, 0);
  EXPECT_EQ((*check)->port_index, 1);
  EXPECT_NE(check_mistake({{"type", "TCP"}, {"tcp", {{"port", 81}}}}, bridged), "");
}

TEST(HealthCheck, MistakesAreToldInTheWordsOfMesos) {
  const std::string prefix = "Task uses invalid health check: ";
  EXPECT_EQ(check_mistake(json::object()), prefix + "HealthCheck must specify 'type'");
  EXPECT_EQ(check_mistake({{"type", "COMMAND"}}),
            prefix + "Expecting 'command' to be set for COMMAND health check");
  EXPECT_EQ(check_mistake({{"type", "HTTP"}}), prefix + "Expecting 'http' to be set for HTTP health check");
  EXPECT_EQ(check_mistake({{"type", "TCP"}}), prefix + "Expecting 'tcp' to be set for TCP health check");
  EXPECT_EQ(check_mistake({{"type", "TCP"}, {"tcp", {{"port", 1}}}, {"delay_seconds", -1.0}}),
            prefix + "Expecting 'delay_seconds' to be non-negative");
  EXPECT_EQ(check_mistake({{"type", "HTTP"}, {"http", {{"port", 1}, {"path", "up"}}}}),
            prefix + "The path 'up' of HTTP health check must start with '/'");
  EXPECT_EQ(check_mistake({{"type", "TCP"}, {"tcp", {{"port", 70000}}}}), prefix + "'port' is 70000");
}

}  // namespace
}  // namespace drover::api::mesos

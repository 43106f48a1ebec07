#include "control/environment.h"

#include <gtest/gtest.h>

namespace drover::control {
namespace {

TEST(Environment, TellsAnAppWhatMarathonTellsIt) {
  TaskRecord record;
  auto& task = record.task;
  task.origin = {workload::OriginKind::kService, "/shop/web", "shop_web.1", "2026-01-02T03:04:05.006Z"};
  task.image = "example:1";
  task.resources.milli_cpus = 500;
  task.resources.memory_bytes = 2048ULL << 20;
  task.resources.gpus = {{2, {}}};
  task.labels = {{"team-name", "vision"}};
  task.environment = {{"A", "1"}, {"PORT", "mine"}, {"MESOS_TASK_ID", "forged"}};
  task.network.ports = {{.name = "http-api", .container_port = 8888}, {}};
  record.ports = {31005, 31500};
  const std::map<std::string, std::string> expected = {
      {"A", "1"},
      {"HOST", "gpu1"},
      {"MARATHON_APP_DOCKER_IMAGE", "example:1"},
      {"MARATHON_APP_ID", "/shop/web"},
      {"MARATHON_APP_LABELS", "TEAM_NAME"},
      {"MARATHON_APP_LABEL_TEAM_NAME", "vision"},
      {"MARATHON_APP_RESOURCE_CPUS", "0.5"},
      {"MARATHON_APP_RESOURCE_DISK", "0.0"},
      {"MARATHON_APP_RESOURCE_GPUS", "2"},
      {"MARATHON_APP_RESOURCE_MEM", "2048.0"},
      {"MARATHON_APP_VERSION", "2026-01-02T03:04:05.006Z"},
      {"MESOS_AGENT_ID", "M-S0"},
      {"MESOS_ALLOCATION_ROLE", "*"},
      {"MESOS_EXECUTOR_ID", "shop_web.1"},
      {"MESOS_FRAMEWORK_ID", "M-marathon"},
      {"MESOS_SLAVE_ID", "M-S0"},
      {"MESOS_TASK_ID", "shop_web.1"},
      {"PORT", "mine"},
      {"PORT0", "31005"},
      {"PORT1", "31500"},
      {"PORTS", "31005,31500"},
      {"PORT_8888", "31005"},
      {"PORT_HTTP_API", "31005"},
  };
  EXPECT_EQ(environment_of(record, "gpu1", "M"), expected);
}

TEST(Environment, TellsARunWhatMesosTellsIt) {
  TaskRecord record;
  record.task.origin = {workload::OriginKind::kSchedule, "nightly", "ct:1:0:nightly:", ""};
  const std::map<std::string, std::string> expected = {
      {"HOST", "gpu1"},
      {"MESOS_AGENT_ID", "M-S0"},
      {"MESOS_ALLOCATION_ROLE", "*"},
      {"MESOS_EXECUTOR_ID", "ct:1:0:nightly:"},
      {"MESOS_FRAMEWORK_ID", "M-chronos"},
      {"MESOS_SLAVE_ID", "M-S0"},
      {"MESOS_TASK_ID", "ct:1:0:nightly:"},
  };
  EXPECT_EQ(environment_of(record, "gpu1", "M"), expected);
}

TEST(Environment, OfATaskThatSomebodySubmittedIsWhatHeSaid) {
  TaskRecord record;
  record.task.environment = {{"A", "1"}};
  EXPECT_EQ(environment_of(record, "gpu1", "M"), record.task.environment);
}

}  // namespace
}  // namespace drover::control

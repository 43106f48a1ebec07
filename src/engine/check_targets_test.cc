#include "engine/check_targets.h"

#include <gtest/gtest.h>

#include "control/testing/services.h"

namespace drover::engine {
namespace {

using namespace control::testing;  // NOLINT: the machine

TEST(CheckTargets, AreTheChecksOfInstancesThatRun) {
  Services machine(0);
  auto web = service("/web", 1);
  web.task.network.ports = {{}, {.host_port = 9000}};
  web.health_checks = {{.port_index = 0}, {.kind = workload::CheckKind::kTcp, .port = 4321, .ipv6 = true}};
  web.readiness = workload::ReadinessCheck{.port_index = 1};
  ASSERT_TRUE(machine.put(web));
  EXPECT_TRUE(targets_of(machine.state).empty()) << "it does not run yet";
  machine.obey();
  const auto targets = targets_of(machine.state);
  ASSERT_EQ(targets.size(), 3u);
  const auto& record = *machine.instances("/web").front();
  EXPECT_EQ(targets[0].task_id, record.task.id);
  EXPECT_EQ(targets[0].port, record.ports[0]);
  EXPECT_EQ(targets[1].port, 4321);
  EXPECT_EQ(targets[1].host, "::1");
  EXPECT_EQ(targets[2].port, 9000);

  const CheckResult ready{record.task.id, targets[2].check, true, "200 (OK)",
                          CheckResponse{200, "text/plain", "yes"}};
  const auto told = result_of(ready, machine.now);
  EXPECT_EQ(told.check, -1);
  EXPECT_EQ(told.answer->body, "yes");
  ASSERT_TRUE(machine.on(control::event::Checked{told}));
  EXPECT_EQ(targets_of(machine.state).size(), 2u) << "who is ready is not asked again";
  EXPECT_EQ(result_of({record.task.id, targets[1].check, false, "refused", {}}, machine.now).check, 1);
}

TEST(CheckTargets, AreTheChecksOfFrameworksTasksThatRun) {
  Machine machine(0);
  control::FrameworkRecord framework;
  framework.failover_timeout = std::chrono::seconds(60);
  ASSERT_TRUE(machine.on(control::event::FrameworkSubscribed{"F", framework}));
  control::FrameworkLaunch launch{"t", task("", 0)};
  launch.task.origin = {workload::OriginKind::kFramework, "F", "t", ""};
  launch.health_check = workload::HealthCheck{.kind = workload::CheckKind::kTcp, .port = 31007};
  const auto decided = control::decide(machine.state, control::event::FrameworkLaunched{{launch}}, kNow);
  ASSERT_TRUE(decided);
  EXPECT_TRUE(changes_targets(*decided));
  control::apply(machine.state, *decided);
  EXPECT_TRUE(targets_of(machine.state).empty()) << "it does not run yet";
  const auto id = machine.state.tasks.begin()->first;
  ASSERT_TRUE(machine.on(control::event::Started{id, kNow}));
  const auto targets = targets_of(machine.state);
  ASSERT_EQ(targets.size(), 1u);
  EXPECT_EQ(targets[0].task_id, id);
  EXPECT_EQ(targets[0].port, 31007);
}

}  // namespace
}  // namespace drover::engine

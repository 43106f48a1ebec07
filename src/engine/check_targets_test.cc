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
  const auto id = machine.instances("/web").front()->task.id;
  EXPECT_TRUE(targets_of(machine.state, id).empty()) << "it does not run yet";
  machine.obey();
  const auto targets = targets_of(machine.state, id);
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
  EXPECT_EQ(targets_of(machine.state, id).size(), 2u) << "who is ready is not asked again";
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
  launch.check = workload::HealthCheck{.kind = workload::CheckKind::kHttp, .port = 31008};
  const auto decided = control::decide(machine.state, control::event::FrameworkLaunched{{launch}}, kNow);
  ASSERT_TRUE(decided);
  control::apply(machine.state, *decided);
  const auto id = machine.state.tasks.begin()->first;
  EXPECT_TRUE(tasks_to_check(machine.state, *decided).contains(id));
  EXPECT_TRUE(targets_of(machine.state, id).empty()) << "it does not run yet";
  ASSERT_TRUE(machine.on(control::event::Started{id, kNow}));
  const auto targets = targets_of(machine.state, id);
  ASSERT_EQ(targets.size(), 2u);
  EXPECT_EQ(targets[0].task_id, id);
  EXPECT_EQ(targets[0].port, 31007);
  EXPECT_EQ(targets[1].port, 31008);
  const auto told = result_of({id, targets[1].check, false, "/ answered 503", {}, 503}, kNow);
  EXPECT_EQ(told.check, control::kGeneralCheck);
  EXPECT_EQ(told.status, 503);
}

/// Follows what every outcome says of targets, as the engine does.
struct Followed : Services {
  using Services::Services;

  void happens(const control::Event& event) {
    const auto outcome = control::decide(state, event, now);
    ASSERT_TRUE(outcome) << to_string(outcome.error());
    control::apply(state, *outcome);
    for (const auto& id : tasks_to_check(state, *outcome))
      if (auto targets = targets_of(state, id); targets.empty())
        kept.erase(id);
      else
        kept[id] = std::move(targets);
    decltype(kept) all;
    for (const auto& [id, record] : state.tasks)
      if (auto targets = targets_of(state, id); !targets.empty()) all[id] = std::move(targets);
    EXPECT_EQ(kept, all);
  }
  void all_obey() {
    for (bool quiet = false; !quiet;) {
      quiet = true;
      const auto tasks = state.tasks;
      for (const auto& [id, record] : tasks) {
        if (record.state == control::TaskState::kStarting) happens(control::event::Started{id, now});
        if (record.state == control::TaskState::kStopping)
          happens(control::event::Ended{id, ended(143, true)});
        quiet &= control::is_final(record.state) || record.state == control::TaskState::kRunning;
      }
    }
  }
  void all_ready() {
    for (const auto* record : instances("/web"))
      happens(control::event::Checked{{.task = record->task.id, .check = -1, .passed = true, .at = now}});
  }

  std::map<std::string, std::vector<CheckTarget>> kept;
};

TEST(CheckTargets, NothingIsMissedThatChangesThem) {
  Followed machine(0);
  auto web = service("/web", 3);
  web.health_checks = {{.port = 4321}};
  web.readiness = workload::ReadinessCheck{};
  for (int version = 0; version < 4; ++version) {
    web.task.environment.edit()["VERSION"] = std::to_string(version);
    machine.now += std::chrono::seconds(1);
    machine.happens(control::event::ServicesChanged{.put = {web}, .force = true});
    machine.all_obey();
    EXPECT_FALSE(machine.kept.empty());
    machine.all_ready();
    machine.all_obey();
  }
  machine.happens(control::event::ServicesChanged{.removed = {"/web"}, .force = true});
  machine.all_obey();
  EXPECT_TRUE(machine.kept.empty());
}

}  // namespace
}  // namespace drover::engine

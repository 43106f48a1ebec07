// Services: deployments, rolling upgrades, what fails and is tried again.

#include "control/services.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/deployments.h"
#include "control/testing/services.h"

namespace drover::control {
namespace {

using namespace testing;  // NOLINT: the machine
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST(Services, KeepAsManyInstancesAsTheyAreToHave) {
  Services machine(4);
  ASSERT_TRUE(machine.put(service("/web", 3, 1)));
  EXPECT_EQ(machine.in("/web", TaskState::kStarting), 3u);
  EXPECT_THAT(machine.state.deployments, SizeIs(1));
  machine.obey();
  EXPECT_EQ(machine.in("/web", TaskState::kRunning), 3u);
  EXPECT_THAT(machine.state.deployments, IsEmpty());
  EXPECT_EQ(machine.state.cluster.free("here").gpus, 1);
}

TEST(Services, GoOnInQueuesWhoseTasksHaveATime) {
  Services machine(4);
  placement::Rules rules;
  rules.queues["default"] = {.path = "default", .most = {std::chrono::hours(1), std::chrono::minutes(30)}};
  ASSERT_TRUE(machine.on(event::RulesChanged{rules}));
  ASSERT_TRUE(machine.put(service("/web", 1, 1)));
  machine.obey();
  const auto& task = machine.instances("/web").front()->task;
  EXPECT_EQ(task.timeout, std::nullopt);
  EXPECT_EQ(task.batch.idle_timeout, std::nullopt);
}

TEST(Services, AnInstanceIsKnownAsMarathonKnowsIt) {
  Services machine(0);
  ASSERT_TRUE(machine.put(service("/shop/web", 1)));
  const auto& origin = machine.instances("/shop/web").front()->task.origin;
  EXPECT_THAT(origin.task_id, ::testing::MatchesRegex("shop_web\\.instance-[0-9a-f-]+\\._app\\.1"));
  EXPECT_EQ(origin.version, format_time(machine.state.services.at("/shop/web").target.version));
}

TEST(Services, ShrinkByTheYoungestOrTheOldest) {
  for (const bool oldest : {false, true}) {
    Services machine(0);
    auto web = service("/web", 3);
    web.oldest_first = oldest;
    ASSERT_TRUE(machine.put(web));
    machine.obey();
    const auto before = machine.instances("/web");
    const auto kept = before[oldest ? 2 : 0]->task.id;
    web.instances = 1;
    ASSERT_TRUE(machine.put(web));
    machine.obey();
    ASSERT_THAT(machine.instances("/web"), SizeIs(1));
    EXPECT_EQ(machine.instances("/web").front()->task.id, kept);
  }
}

TEST(Services, ShrinkingIsDoneWhenThoseWhoGoAreGone) {
  Services machine(3);
  auto web = service("/web", 3, 1);
  ASSERT_TRUE(machine.put(web));
  machine.obey();
  web.instances = 1;
  ASSERT_TRUE(machine.put(web));
  EXPECT_EQ(machine.in("/web", TaskState::kStopping), 2u);
  EXPECT_THAT(machine.state.deployments, SizeIs(1)) << "their GPUs are not free yet";
  machine.obey();
  EXPECT_THAT(machine.state.deployments, IsEmpty());
  EXPECT_EQ(machine.state.cluster.free("here").gpus, 2);
}

TEST(Services, WhatFailsIsTriedAgainEverLater) {
  Services machine(0);
  auto web = service("/web", 1);
  web.backoff = {1s, 2.0, 3s};
  ASSERT_TRUE(machine.put(web));
  std::vector<std::chrono::milliseconds> waits;
  for (int i = 0; i < 4; ++i) {
    machine.obey();
    machine.fails(machine.instances("/web").front()->task.id, 3);
    ASSERT_THAT(machine.instances("/web"), IsEmpty());
    const auto next = next_deadline(machine.state);
    ASSERT_TRUE(next);
    waits.push_back(*next - machine.now);
    machine.now = *next - 1ms;
    machine.tick();
    EXPECT_THAT(machine.instances("/web"), IsEmpty());
    machine.now = *next;
    machine.tick();
    EXPECT_THAT(machine.instances("/web"), SizeIs(1));
  }
  EXPECT_THAT(waits, ElementsAre(1s, 2s, 3s, 3s));
  EXPECT_EQ(machine.state.services.at("/web").last_failure->message, "exited with status 3");
  machine.obey();
  machine.now += 2min;
  machine.fails(machine.instances("/web").front()->task.id);
  EXPECT_EQ(*next_deadline(machine.state) - machine.now, 1s) << "it had been well for long";
  ASSERT_TRUE(machine.on(event::DelayReset{"/web"}, machine.now));
  EXPECT_THAT(machine.instances("/web"), SizeIs(1));
}

TEST(Services, TheClockThatIsSetNeitherShortensNorLengthensADelay) {
  for (const auto set : {-24h, 24h}) {
    Services machine(0);
    auto web = service("/web", 1);
    web.backoff = {10s, 2.0, 1min};
    ASSERT_TRUE(machine.put(web));
    machine.obey();
    machine.fails(machine.instances("/web").front()->task.id, 3);
    const auto at = machine.now;
    ASSERT_TRUE(machine.on(event::Tick{}, Moment(at + 9s + set, at + 9s)));
    EXPECT_THAT(machine.instances("/web"), IsEmpty());
    ASSERT_TRUE(machine.on(event::Tick{}, Moment(at + 10s + set, at + 10s)));
    EXPECT_THAT(machine.instances("/web"), SizeIs(1));
  }
}

TEST(Services, OnlyTheLastEndedInstancesAreKept) {
  Services machine(0);
  ASSERT_TRUE(machine.put(service("/web", 1)));
  for (int i = 0; i < 30; ++i) {
    machine.obey();
    machine.fails(machine.instances("/web").front()->task.id);
    machine.now += 10min;
    machine.tick();
  }
  EXPECT_LE(machine.state.tasks.size(), kKeptInstances + 1);
}

TEST(Services, ManyThatEndAtOnceLeaveNothingBehind) {
  Services machine(1);
  ASSERT_TRUE(machine.submit(task("busy", 1)));
  auto web = service("/web", 40, 1);
  ASSERT_TRUE(machine.put(web));
  web.instances = 0;
  ASSERT_TRUE(machine.put(web, true));
  EXPECT_THAT(machine.state.tasks, SizeIs(1 + kKeptInstances));
  EXPECT_THAT(machine.state.queue, IsEmpty());
  machine.now += 24h * 8;
  machine.tick();
  machine.obey();
  EXPECT_THAT(machine.state.tasks, SizeIs(1)) << "their time is over";
}

/// How few were well, and how many were there at once.
using Seen = std::pair<std::size_t, std::size_t>;

/// While a new version took over.
Seen roll(double minimum_health, double over_capacity, int instances) {
  Services machine(0);
  auto web = service("/web", instances);
  web.minimum_health = minimum_health;
  web.maximum_over_capacity = over_capacity;
  EXPECT_TRUE(machine.put(web));
  machine.obey();
  web.task.environment.edit()["VERSION"] = "2";
  EXPECT_TRUE(machine.put(web));
  Seen seen{1000, 0};
  while (!machine.state.deployments.empty()) {
    const auto tasks = machine.instances("/web");
    seen.first = std::min(seen.first, machine.in("/web", TaskState::kRunning));
    seen.second = std::max(seen.second, tasks.size());
    const auto moving =
        std::ranges::find_if(tasks, [](const auto* task) { return task->state != TaskState::kRunning; });
    if (moving == tasks.end()) {
      ADD_FAILURE() << "nothing goes on";
      break;
    }
    const auto id = (*moving)->task.id;
    if ((*moving)->state == TaskState::kStarting)
      (void)machine.on(event::Started{id, machine.now}, machine.now);
    else
      (void)machine.on(event::Ended{id, machine.ended(143, true)}, machine.now);
  }
  EXPECT_THAT(machine.instances("/web"), SizeIs(instances));
  for (const auto* task : machine.instances("/web")) EXPECT_EQ(task->task.environment->count("VERSION"), 1u);
  return seen;
}

TEST(Services, ANewVersionTakesOverWithinItsLimits) {
  EXPECT_EQ(roll(1, 1, 4), Seen(4, 8));
  EXPECT_EQ(roll(0.5, 0, 4), Seen(2, 4));
  EXPECT_EQ(roll(0, 0, 4), Seen(0, 4));
  EXPECT_EQ(roll(1, 0.25, 4), Seen(4, 5));
  EXPECT_EQ(roll(1, 0, 3), Seen(3, 4)) << "one more than allowed, or nothing could begin";
}

TEST(Services, AnUnhealthyNewVersionDoesNotTakeOver) {
  Services machine(0);
  auto web = service("/web", 2);
  web.health_checks = {{.grace_period = 0ms, .max_consecutive_failures = 2}};
  web.maximum_over_capacity = 0.5;
  ASSERT_TRUE(machine.put(web));
  machine.obey();
  ASSERT_THAT(machine.state.deployments, SizeIs(1)) << "nothing is known of its health";
  for (const auto* task : machine.instances("/web")) machine.check(task->task.id, true);
  ASSERT_THAT(machine.state.deployments, IsEmpty());
  web.task.environment.edit()["VERSION"] = "2";
  ASSERT_TRUE(machine.put(web));
  machine.obey();
  const auto is_new = [](const auto* task) { return task->task.environment->count("VERSION") > 0; };
  const auto instances = machine.instances("/web");
  ASSERT_EQ(std::ranges::count_if(instances, is_new), 1);
  const auto fresh = (*std::ranges::find_if(instances, is_new))->task.id;
  machine.check(fresh, false);
  EXPECT_EQ(machine.at(fresh), TaskState::kRunning);
  machine.check(fresh, false);
  EXPECT_EQ(machine.at(fresh), TaskState::kStopping);
  machine.obey();
  EXPECT_EQ(machine.at(fresh), TaskState::kFailed);
  EXPECT_EQ(machine.record(fresh).reason, "killed because its health check failed 2 times in a row: refused");
  EXPECT_EQ(machine.in("/web", TaskState::kRunning), 2u) << "the old ones serve on";
  EXPECT_THAT(machine.state.deployments, SizeIs(1));
}

TEST(Services, TheOldMakesWayAsSoonAsTheNewIsWell) {
  Services machine(0);
  auto web = service("/web", 1);
  web.health_checks = {{}};
  ASSERT_TRUE(machine.put(web));
  machine.obey();
  machine.check(machine.instances("/web").front()->task.id, true);
  web.task.environment.edit()["VERSION"] = "2";
  ASSERT_TRUE(machine.put(web));
  machine.obey();
  const auto both = machine.instances("/web");
  ASSERT_THAT(both, SizeIs(2));
  const auto old = both.front()->task.id;
  machine.check(both.back()->task.id, true);
  EXPECT_EQ(machine.at(old), TaskState::kStopping);
  machine.obey();
  EXPECT_THAT(machine.state.deployments, IsEmpty());
}

TEST(Services, ANewVersionTakesThePlaceOfWhatOnlyWaits) {
  Services machine(1);
  ASSERT_TRUE(machine.submit(task("busy", 1)));
  auto web = service("/web", 1, 1);
  web.minimum_health = web.maximum_over_capacity = 0;
  ASSERT_TRUE(machine.put(web));
  const auto first = machine.instances("/web").front()->task.id;
  web.task.environment.edit()["VERSION"] = "2";
  ASSERT_TRUE(machine.put(web, true));
  ASSERT_THAT(machine.instances("/web"), SizeIs(1));
  EXPECT_NE(machine.instances("/web").front()->task.id, first);
  EXPECT_EQ(machine.at(first), TaskState::kKilled);
}

TEST(Services, FailuresInTheGracePeriodDoNotCount) {
  Services machine(0);
  auto web = service("/web", 1);
  web.health_checks = {{.grace_period = 60s, .max_consecutive_failures = 1}};
  ASSERT_TRUE(machine.put(web));
  machine.obey();
  const auto id = machine.instances("/web").front()->task.id;
  machine.check(id, false);
  EXPECT_EQ(machine.at(id), TaskState::kRunning);
  machine.now += 61s;
  machine.check(id, false);
  EXPECT_EQ(machine.at(id), TaskState::kStopping);
}

TEST(Services, WaitUntilTheirVersionIsReady) {
  Services machine(0);
  auto web = service("/web", 1);
  web.readiness = workload::ReadinessCheck{};
  ASSERT_TRUE(machine.put(web));
  machine.obey();
  EXPECT_THAT(machine.state.deployments, SizeIs(1));
  machine.check(machine.instances("/web").front()->task.id, true, -1);
  EXPECT_THAT(machine.state.deployments, IsEmpty());
}

TEST(Services, ComeUpAfterWhatTheyDependOn) {
  Services machine(0);
  auto web = service("/shop/web", 1);
  web.dependencies = {"/shop/db"};
  ASSERT_TRUE(machine.on(event::ServicesChanged{.put = {web, service("/shop/db/main", 1)}}));
  EXPECT_THAT(machine.instances("/shop/web"), IsEmpty());
  machine.obey();
  EXPECT_EQ(machine.in("/shop/web", TaskState::kRunning), 1u);
  EXPECT_LT(machine.instances("/shop/db/main").front()->sequence,
            machine.instances("/shop/web").front()->sequence);
}

TEST(Services, ThatDependOnEachOtherAreRefused) {
  Services machine(0);
  auto a = service("/a", 1), b = service("/b", 1);
  a.dependencies = {"/b"};
  b.dependencies = {"/a"};
  const auto refused = machine.on(event::ServicesChanged{.put = {a, b}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "These services depend on each other in a circle: /a, /b");
  EXPECT_THAT(machine.state.services, IsEmpty());
}

TEST(Services, AreLockedWhileADeploymentIsAtWork) {
  Services machine(0);
  auto web = service("/web", 1);
  ASSERT_TRUE(machine.put(web));
  web.instances = 2;
  const auto refused = machine.put(web);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kConflict);
  ASSERT_TRUE(machine.put(web, true));
  EXPECT_THAT(machine.state.deployments, SizeIs(1));
  machine.obey();
  EXPECT_EQ(machine.in("/web", TaskState::kRunning), 2u);
}

TEST(Services, OfADeploymentThatIsGivenUpAreGoneOnWithByTheNext) {
  Services machine(0);
  auto web = service("/shop/web", 2);
  web.dependencies = {"/shop/db"};
  auto db = service("/shop/db", 1);
  ASSERT_TRUE(machine.on(event::ServicesChanged{.put = {web, db}}, machine.now));
  db.task.command = {"another"};
  ASSERT_TRUE(machine.put(db, true));
  const auto next = machine.state.deployments.begin()->second;
  EXPECT_TRUE(next.touches("/shop/web"));
  EXPECT_THAT(machine.instances("/shop/web"), IsEmpty());
  const auto versions = machine.state.services.at("/shop/web").versions;
  // Taking it back takes back what it was for, and brings up the rest all the same.
  ASSERT_TRUE(machine.on(event::DeploymentCancelled{next.id, true}, machine.now));
  machine.obey();
  EXPECT_THAT(machine.state.deployments, IsEmpty());
  EXPECT_EQ(machine.in("/shop/web", TaskState::kRunning), 2u);
  EXPECT_EQ(machine.instances("/shop/db").front()->task.command, service("/shop/db", 1).task.command);
  EXPECT_EQ(machine.state.services.at("/shop/web").versions, versions);
}

TEST(Services, GoWithTheirInstances) {
  Services machine(1);
  ASSERT_TRUE(machine.put(service("/web", 1, 1)));
  machine.obey();
  ASSERT_TRUE(machine.remove("/web"));
  EXPECT_TRUE(machine.state.services.at("/web").removed);
  EXPECT_FALSE(machine.remove("/web"));
  machine.obey();
  EXPECT_THAT(machine.state.services, IsEmpty());
  EXPECT_EQ(machine.state.cluster.free("here").gpus, 1);
}

TEST(Services, GoThoughTheirDeploymentWasGivenUp) {
  Services machine(0);
  auto a = service("/g/a", 1), b = service("/g/b", 2);
  ASSERT_TRUE(machine.on(event::ServicesChanged{.put = {a, b}}, machine.now));
  machine.obey();
  ASSERT_TRUE(machine.on(event::ServicesChanged{.removed = {"/g/a", "/g/b"}}, machine.now));
  a.task.command = {"another"};
  ASSERT_TRUE(machine.put(a, true));
  machine.obey();
  EXPECT_THAT(machine.instances("/g/a"), SizeIs(1));
  EXPECT_FALSE(machine.state.services.contains("/g/b"));
  EXPECT_THAT(machine.state.deployments, IsEmpty());
}

TEST(Services, KeepTheirChecksHoweverOftenTheyAreScaled) {
  Services machine(0);
  auto web = service("/web", 1);
  web.health_checks = {{.grace_period = 0ms, .max_consecutive_failures = 1}};
  ASSERT_TRUE(machine.put(web));
  machine.obey();
  const auto first = machine.instances("/web").front()->task.id;
  for (int i = 0; i < 40; ++i) {
    web.instances = 1 + i % 2;
    machine.now += 1s;
    ASSERT_TRUE(machine.put(web, true));
    machine.obey();
    machine.check(machine.instances("/web").back()->task.id, true);
  }
  web.instances = 2;
  ASSERT_TRUE(machine.put(web, true));
  EXPECT_EQ(machine.at(first), TaskState::kRunning);
  machine.check(first, false);
  EXPECT_EQ(machine.at(first), TaskState::kStopping);
}

TEST(Services, TwoDeploymentsOfOneMillisecondAreTwo) {
  Services machine(0);
  for (const char* id : {"/a", "/b"}) ASSERT_TRUE(machine.put(service(id, 1)));
  machine.obey();
  for (const char* id : {"/a", "/b"}) ASSERT_TRUE(machine.remove(id));
  EXPECT_THAT(machine.state.deployments, SizeIs(2));
  machine.obey();
  EXPECT_THAT(machine.state.deployments, IsEmpty());
}

TEST(Services, AKilledInstanceIsReplacedUnlessTheServiceShrinks) {
  Services machine(0);
  ASSERT_TRUE(machine.put(service("/web", 2)));
  machine.obey();
  ASSERT_TRUE(machine.on(event::InstancesKilled{{machine.instances("/web").front()->task.id}}));
  machine.obey();
  EXPECT_EQ(machine.in("/web", TaskState::kRunning), 2u);
  const auto chosen = machine.instances("/web").back()->task.id;
  ASSERT_TRUE(machine.on(event::InstancesKilled{.ids = {chosen}, .scale = true}));
  machine.obey();
  ASSERT_THAT(machine.instances("/web"), SizeIs(1));
  EXPECT_NE(machine.instances("/web").front()->task.id, chosen);
  EXPECT_EQ(machine.state.services.at("/web").target.instances, 1);
}

TEST(Services, ADeploymentCanBeTakenBack) {
  Services machine(0);
  auto web = service("/web", 1);
  ASSERT_TRUE(machine.put(web));
  machine.obey();
  web.task.command = {"broken"};
  web.instances = 3;
  ASSERT_TRUE(machine.put(web));
  const auto id = machine.state.deployments.begin()->first;
  ASSERT_TRUE(machine.on(event::DeploymentCancelled{id}));
  machine.obey();
  EXPECT_THAT(machine.state.deployments, IsEmpty());
  ASSERT_THAT(machine.instances("/web"), SizeIs(1));
  EXPECT_THAT(*machine.instances("/web").front()->task.command, ElementsAre("true"));
}

TEST(Services, ARestartReplacesEveryInstance) {
  Services machine(0);
  const auto web = service("/web", 2);
  ASSERT_TRUE(machine.put(web));
  machine.obey();
  std::set<std::string> before;
  for (const auto* task : machine.instances("/web")) before.insert(task->task.id);
  ASSERT_TRUE(machine.on(event::ServicesChanged{.put = {web}, .restart = true}));
  machine.obey();
  ASSERT_THAT(machine.instances("/web"), SizeIs(2));
  for (const auto* task : machine.instances("/web")) EXPECT_FALSE(before.contains(task->task.id));
}

TEST(Services, GoOnAfterARestartOfTheDaemon) {
  Services machine(0);
  auto web = service("/web", 2);
  ASSERT_TRUE(machine.put(web));
  machine.obey();
  web.task.environment.edit()["VERSION"] = "2";
  ASSERT_TRUE(machine.put(web));
  machine.restart();
  machine.obey();
  EXPECT_THAT(machine.state.deployments, IsEmpty());
  EXPECT_EQ(machine.in("/web", TaskState::kRunning), 2u);
  for (const auto* task : machine.instances("/web")) EXPECT_EQ(task->task.environment->count("VERSION"), 1u);
}

}  // namespace
}  // namespace drover::control

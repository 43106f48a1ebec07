#include "control/superseding.h"

#include <gtest/gtest.h>

#include "control/testing/services.h"

namespace drover::control {
namespace {

using namespace testing;  // NOLINT: the machine
using namespace std::chrono_literals;

bool may_put(const Services& machine, const workload::Service& wanted) {
  return may_supersede(machine.state, event::ServicesChanged{.put = {wanted}}, machine.now);
}
bool may_remove(const Services& machine, const std::string& id) {
  return may_supersede(machine.state, event::ServicesChanged{.removed = {id}}, machine.now);
}

/// Another version of it.
workload::Service mended(workload::Service service) {
  service.task.environment.edit()["MENDED"] = "1";
  return service;
}

std::string first_instance(const Services& machine, const std::string& id) {
  return machine.instances(id).front()->task.id;
}

TEST(Superseding, ADeploymentOfWhichNothingIsUpMakesWay) {
  Services machine(1);
  const auto web = service("/web", 2, 1);  // there is one GPU
  ASSERT_TRUE(machine.put(web));
  EXPECT_TRUE(may_put(machine, mended(web))) << "it has not started";
  EXPECT_TRUE(may_remove(machine, "/web"));
  machine.obey();
  ASSERT_EQ(machine.state.deployments.size(), 1u);
  EXPECT_FALSE(may_put(machine, mended(web))) << "an instance is up";
  EXPECT_FALSE(may_remove(machine, "/web"));
  EXPECT_TRUE(may_put(machine, web)) << "what is as it is to be is not changed";
}

TEST(Superseding, WhatFollowsAFailureIsNotUpUntilItHasLasted) {
  Services machine(0);
  const auto web = service("/web", 2);
  ASSERT_TRUE(machine.put(web));
  machine.fails(first_instance(machine, "/web"), 2);
  const auto other = first_instance(machine, "/web");
  (void)machine.on(event::Started{other, machine.now}, machine.now);
  ASSERT_EQ(machine.in("/web", TaskState::kRunning), 1u);
  ASSERT_EQ(machine.state.deployments.size(), 1u);
  EXPECT_TRUE(may_put(machine, mended(web))) << "as the one before, it may be there for a moment only";
  machine.now += kSettled;
  EXPECT_FALSE(may_put(machine, mended(web)));
}

TEST(Superseding, AnUpgradeMakesWayThoughTheVersionBeforeIsUp) {
  Services machine(2);
  const auto web = service("/web", 1, 1);
  ASSERT_TRUE(machine.put(web));
  machine.obey();
  ASSERT_TRUE(machine.state.deployments.empty());
  const auto next = mended(web);
  ASSERT_TRUE(machine.put(next));
  EXPECT_TRUE(may_put(machine, web));
  EXPECT_TRUE(may_put(machine, mended(next)));
}

TEST(Superseding, OnlyWhatIsUnderWayIsLookedAt) {
  Services machine(0);
  const auto front = service("/front", 2);
  ASSERT_TRUE(machine.put(front));
  machine.obey();
  EXPECT_TRUE(may_put(machine, mended(front))) << "no deployment is in the way";
  const auto back = service("/back", 1);
  ASSERT_TRUE(machine.put(back));
  EXPECT_TRUE(may_supersede(machine.state, event::ServicesChanged{.put = {mended(front), mended(back)}},
                            machine.now));
}

TEST(Superseding, WhatIsOnItsWayOutHasAnEnd) {
  Services machine(0);
  const auto web = service("/web", 1);
  ASSERT_TRUE(machine.put(web));
  machine.obey();
  ASSERT_TRUE(machine.remove("/web"));
  EXPECT_FALSE(may_put(machine, mended(web)));
}

TEST(Superseding, RestartsAreChanges) {
  Services machine(1);
  const auto web = service("/web", 2, 1);
  ASSERT_TRUE(machine.put(web));
  machine.obey();
  EXPECT_FALSE(
      may_supersede(machine.state, event::ServicesChanged{.put = {web}, .restart = true}, machine.now));
}

}  // namespace
}  // namespace drover::control

#include "control/upgrade_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/testing/services.h"

namespace drover::control {
namespace {

using namespace testing;  // NOLINT: the machine
using ::testing::HasSubstr;

/// A machine with so many GPUs, whose service is to be upgraded from instances that have one each.
Services upgraded(int gpus, int instances, double minimum_health) {
  Services machine(gpus);
  auto web = service("/web", instances, 1);
  web.minimum_health = minimum_health;
  EXPECT_TRUE(machine.put(web));
  machine.obey();
  web.task.environment.edit()["VERSION"] = "2";
  EXPECT_TRUE(machine.put(web));
  machine.obey();
  return machine;
}

TEST(UpgradeBlock, IsToldWhereTheOldVersionHasWhatTheNewOneNeeds) {
  const auto machine = upgraded(1, 1, 1);
  ASSERT_EQ(machine.in("/web", TaskState::kQueued), 1u);
  const auto why = upgrade_block(machine.state, "/web");
  ASSERT_TRUE(why);
  EXPECT_THAT(*why, HasSubstr("minimumHealthCapacity of upgradeStrategy to 0,"));
  EXPECT_THAT(*why, HasSubstr("an old instance ends first"));
}

TEST(UpgradeBlock, WhatItAdvisesHelps) {
  for (const int instances : {1, 2, 3, 4}) {
    auto machine = upgraded(instances, instances, 1);
    const auto why = upgrade_block(machine.state, "/web");
    ASSERT_TRUE(why) << instances;
    const auto at = why->find(" to ") + 4;
    auto web = machine.state.services.at("/web").target;
    web.minimum_health = std::stod(why->substr(at));
    ASSERT_TRUE(machine.put(web, true));
    for (int i = 0; i < 3 * instances; ++i) machine.obey();
    EXPECT_FALSE(upgrade_block(machine.state, "/web"));
    EXPECT_TRUE(machine.state.deployments.empty()) << instances << ": " << *why;
  }
}

TEST(UpgradeBlock, IsNotToldOtherwise) {
  EXPECT_FALSE(upgrade_block(upgraded(2, 1, 1).state, "/web")) << "there is room for both";
  EXPECT_FALSE(upgrade_block(upgraded(1, 1, 0).state, "/web")) << "the old one has ended";
  EXPECT_FALSE(upgrade_block(upgraded(1, 1, 1).state, "/none"));
  Services busy(1);
  ASSERT_TRUE(busy.submit(task("other", 1)));
  ASSERT_TRUE(busy.put(service("/web", 1, 1)));
  EXPECT_FALSE(upgrade_block(busy.state, "/web")) << "somebody else has it";
}

}  // namespace
}  // namespace drover::control

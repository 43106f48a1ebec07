#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/local.h"
#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;
using control::TaskState;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LocalEngineTest;

constexpr const char* kWho = "process 7 (job) has it open, and is no task's";

class StrangersTest : public LocalEngineTest {
 protected:
  std::string unhealthy(std::size_t gpu) { return engine_->inventory().devices[gpu].unhealthy; }
  /// As the daemon's clock does it.
  void pass(std::chrono::milliseconds time) {
    now_ += time;
    engine_->tick();
    run();
  }
};

TEST_F(StrangersTest, AGpuThatSomebodyElseHasOpenIsNotGiven) {
  begin(1);
  world_.strangers["GPU-0"] = kWho;
  const auto id = submit(1)->task.id;
  run();
  EXPECT_EQ(state_of(id), TaskState::kQueued);
  EXPECT_FALSE(world_.launches.contains(id));
  EXPECT_EQ(unhealthy(0), kWho);
  EXPECT_THAT(engine_->explain({}, id)()->reasons, Contains(HasSubstr(kWho)));
  EXPECT_THAT(log_, Contains(HasSubstr(kWho)));
  EXPECT_EQ(wake_at_, now_ + 1s) << "so that it is seen when it is closed";
  pass(1s);
  EXPECT_EQ(state_of(id), TaskState::kQueued);
  world_.strangers.clear();
  pass(1s);
  EXPECT_EQ(unhealthy(0), "");
  EXPECT_EQ(world_.launches[id], 1);
  EXPECT_EQ(world_.attempts[id], 0) << "nothing of it had run";
}

TEST_F(StrangersTest, AnotherGpuIsGivenInstead) {
  begin(2);
  world_.strangers["GPU-0"] = kWho;
  const auto first = submit(1)->task.id;
  run();
  EXPECT_EQ(world_.launches[first], 1);
  EXPECT_EQ(world_.asked.back().gpu_uuids, std::vector<std::string>{"GPU-1"});
}

TEST_F(StrangersTest, TheyAreToldBeforeAnybodyAsksForTheGpu) {
  begin(2);
  world_.strangers["GPU-1"] = kWho;
  engine_->set_machine(node(2));
  run();
  EXPECT_EQ(unhealthy(1), kWho);
  EXPECT_EQ(unhealthy(0), "");
  engine_->set_machine(node(2));
  EXPECT_EQ(unhealthy(1), kWho) << "also when the machine is told anew";
}

TEST_F(StrangersTest, WhatAilsAGpuOtherwiseGoesFirst) {
  begin(1);
  world_.strangers["GPU-0"] = kWho;
  auto machine = node(1);
  machine.inventory.devices[0].unhealthy = "XID 79: it has fallen off the bus";
  engine_->set_machine(machine);
  run();
  EXPECT_EQ(unhealthy(0), "XID 79: it has fallen off the bus");
}

TEST_F(StrangersTest, ThatAGpuIsFitAgainIsNoWarning) {
  begin(1);
  auto machine = node(1);
  machine.inventory.devices[0].unhealthy = "XID 79: it has fallen off the bus";
  engine_->set_machine(machine);
  engine_->set_machine(node(1));
  run();
  EXPECT_THAT(log_, ElementsAre("GPU 0 (GPU-0): XID 79: it has fallen off the bus"));
  EXPECT_THAT(information_, ElementsAre("GPU 0 (GPU-0) is fit"));
}

TEST_F(StrangersTest, AllProcessesAreLookedAtSeldom) {
  begin(2);
  world_.probes.clear();
  for (int i = 0; i < 60; ++i) {
    now_ += 1s;
    engine_->set_machine(node(2));
    run();
  }
  EXPECT_LE(world_.probes.size(), 3U);
  const auto before = world_.probes.size();
  submit(1);
  run();
  ASSERT_EQ(world_.probes.size(), before + 1) << "and once for what is to be given";
  EXPECT_EQ(world_.probes.back(), 1U);
  submit(0);
  run();
  EXPECT_EQ(world_.probes.size(), before + 1) << "a task without GPUs needs none";
}

TEST_F(StrangersTest, AGangIsPutBackWhole) {
  begin(2);
  world_.strangers["GPU-1"] = kWho;
  const auto gang = submit_gang(gang_of(2, 1));
  ASSERT_TRUE(gang);
  run();
  for (const auto& record : *gang) {
    const auto& id = record.task.id;
    if (world_.alive.contains(id)) end(id, 143);
    EXPECT_EQ(state_of(id), TaskState::kQueued) << id;
  }
  world_.strangers.clear();
  pass(2s);
  for (const auto& record : *gang) EXPECT_TRUE(world_.alive.contains(record.task.id));
}

}  // namespace
}  // namespace drover::engine

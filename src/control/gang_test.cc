// Gangs: together or not at all, from the queue to the end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/holds.h"
#include "control/planning.h"
#include "control/testing/machine.h"

namespace drover::control {
namespace {

using namespace testing;  // NOLINT: the machine
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(Gang, ItsMembersStartTogetherOrWaitTogether) {
  Machine machine(4);
  ASSERT_TRUE(machine.submit(task("holder", 1)));
  ASSERT_TRUE(machine.submit(gang("g", 2, 2)));
  EXPECT_EQ(machine.at("g-0"), TaskState::kQueued);
  EXPECT_EQ(machine.at("g-1"), TaskState::kQueued) << "three GPUs are free, but not four";
  EXPECT_EQ(machine.reasons("g-1"), machine.reasons("g-0"));
  ASSERT_TRUE(machine.on(event::Ended{"holder", exited(0)}));
  EXPECT_THAT(machine.asked<action::Launch>(), UnorderedElementsAre("g-0", "g-1"));
  const auto& first = machine.record("g-0");
  EXPECT_EQ(first.gpus.size(), 2u);
  EXPECT_EQ(first.gang_port, machine.record("g-1").gang_port);
  EXPECT_GE(first.gang_port, kFirstPort);
  EXPECT_LE(first.gang_port, kLastPort);
}

TEST(Gang, LiveGangsHaveDifferentPorts) {
  Machine machine(0);
  std::set<int> ports;
  for (int i = 0; i < 30; ++i) {
    const auto id = "g" + std::to_string(i);
    ASSERT_TRUE(machine.submit(gang(id, 2, 0)));
    EXPECT_TRUE(ports.insert(machine.record(id + "-0").gang_port).second);
  }
  const int kept = machine.record("g7-0").gang_port;
  machine.restart();
  ASSERT_TRUE(machine.on(event::Tick{}));
  EXPECT_EQ(machine.record("g7-1").gang_port, kept);
}

TEST(Gang, WhenOneFailsTheOthersAreStoppedAndToldOfWhom) {
  Machine machine(3);
  ASSERT_TRUE(machine.submit(gang("g", 3, 1)));
  ASSERT_TRUE(machine.on(event::Ended{"g-2", exited(3)}));
  EXPECT_THAT(machine.asked<action::Stop>(), UnorderedElementsAre("g-0", "g-1"));
  ASSERT_TRUE(machine.on(event::Ended{"g-0", exited(143, true)}));
  EXPECT_THAT(machine.asked<action::Stop>(), IsEmpty()) << "the last one has been asked already";
  ASSERT_TRUE(machine.on(event::Ended{"g-1", exited(0, true)}));
  EXPECT_EQ(machine.record("g-2").reason, "exited with status 3");
  EXPECT_EQ(machine.at("g-2"), TaskState::kFailed);
  EXPECT_EQ(machine.at("g-0"), TaskState::kKilled);
  EXPECT_EQ(machine.record("g-0").reason, "stopped because of rank 2 of its gang: exited with status 3");
  EXPECT_EQ(machine.at("g-1"), TaskState::kFinished) << "it came to its end all the same";
}

TEST(Gang, AMemberThatSucceedsLeavesTheOthersAlone) {
  Machine machine(2);
  ASSERT_TRUE(machine.submit(gang("g", 2, 1)));
  ASSERT_TRUE(machine.on(event::Ended{"g-0", exited(0)}));
  EXPECT_EQ(machine.at("g-1"), TaskState::kStarting);
  ASSERT_TRUE(machine.submit(task("next", 1)));
  EXPECT_EQ(machine.at("next"), TaskState::kStarting) << "on the GPU that the first member left";
  EXPECT_EQ(uuids_of(machine.record("next")), uuids_of(machine.record("g-0")));
  ASSERT_TRUE(machine.on(event::Ended{"g-1", exited(0)}));
  EXPECT_EQ(machine.state.cluster.free("here").gpus, 1);
}

TEST(Gang, AFailedLaunchEndsIt) {
  Machine machine(2);
  ASSERT_TRUE(machine.submit(gang("g", 2, 1)));
  ASSERT_TRUE(machine.on(event::LaunchFailed{"g-1", Error{ErrorKind::kNotFound, "no such image"}}));
  EXPECT_THAT(machine.asked<action::Stop>(), ElementsAre("g-0"));
  ASSERT_TRUE(machine.on(event::NeverStarted{"g-0"}));
  EXPECT_EQ(machine.record("g-0").reason, "stopped because of rank 1 of its gang: no such image");
}

TEST(Gang, AMemberThatIsPutBackTakesAllBack) {
  Machine machine(2);
  ASSERT_TRUE(machine.submit(gang("g", 2, 1)));
  auto node = node_with(2);
  node.inventory.devices[1].unhealthy = "process 7 (job) has it open";
  ASSERT_TRUE(machine.on(event::NodeChanged{node}));
  ASSERT_TRUE(machine.on(event::PutBack{"g-1", Error{ErrorKind::kUnavailable, "GPU-1 is in use"}}));
  EXPECT_THAT(machine.asked<action::Stop>(), ElementsAre("g-0"));
  EXPECT_EQ(machine.at("g-1"), TaskState::kQueued);
  ASSERT_TRUE(machine.on(event::Ended{"g-0", exited(143, true)}));
  EXPECT_EQ(machine.at("g-0"), TaskState::kQueued) << "together, or not at all";
  EXPECT_EQ(machine.record("g-0").reason, "put back with its gang: GPU-1 is in use");
  ASSERT_TRUE(machine.on(event::NodeChanged{node_with(2)}));
  EXPECT_THAT(machine.asked<action::Launch>(), UnorderedElementsAre("g-0", "g-1"));
}

TEST(Gang, StoppingOneOrNamingItStopsAll) {
  for (const char* named : {"g-1", "g"}) {
    Machine machine(2);
    ASSERT_TRUE(machine.submit(gang("g", 2, 1)));
    ASSERT_TRUE(machine.on(event::StopRequested{named}));
    EXPECT_THAT(machine.asked<action::Stop>(), UnorderedElementsAre("g-0", "g-1")) << named;
    for (const char* id : {"g-0", "g-1"}) ASSERT_TRUE(machine.on(event::Ended{id, exited(143, true)}));
    EXPECT_EQ(machine.at("g-0"), TaskState::kKilled);
    EXPECT_EQ(machine.record("g-1").reason, "stopped on request");
    EXPECT_FALSE(machine.on(event::StopRequested{named}));
  }
}

TEST(Gang, OneThatWaitsIsStoppedWhole) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(task("holder", 1)));
  auto waiting = gang("g", 3, 0);
  for (auto& member : waiting) member.resources.milli_cpus = 21'200;
  ASSERT_TRUE(machine.submit(waiting));
  ASSERT_EQ(machine.at("g-0"), TaskState::kQueued);
  ASSERT_TRUE(machine.on(event::StopRequested{"g-1"}));
  for (const char* id : {"g-0", "g-1", "g-2"}) EXPECT_EQ(machine.at(id), TaskState::kKilled);
  EXPECT_THAT(machine.record("g-2").reason, HasSubstr("rank 1"));
  EXPECT_TRUE(machine.state.queue.empty());
}

TEST(Gang, IsOneJobInOnePlaceOfTheQueue) {
  Machine machine(2);
  auto members = gang("g", 2, 1);
  members[1].priority = 5;
  EXPECT_EQ(machine.submit(members).error().path, "/members/1/priority");
  members = gang("g", 2, 1);
  members[1].resources.gpus = {{-1, {}}};
  EXPECT_EQ(machine.submit(members).error().path, "/members/1/gpus/0/count");
  EXPECT_EQ(machine.submit(gang("g", 2, 2)).error().kind, ErrorKind::kInvalid) << "it can never run";
  EXPECT_EQ(machine.submit(std::vector<workload::Task>{}).error().kind, ErrorKind::kInvalid);
  EXPECT_TRUE(machine.state.tasks.empty());
}

TEST(Gang, ContainersOfOneGroupShareGpusWithinOneOwner) {
  Machine machine(1);
  const auto grouped = [](const std::string& user, uid_t uid, const std::string& id) {
    auto result = task_of(user, uid, id, 1);
    result.resources.group = "team";
    return result;
  };
  ASSERT_TRUE(machine.submit(grouped("alice", 1000, "a")));
  ASSERT_TRUE(machine.submit(grouped("alice", 1000, "b")));
  ASSERT_TRUE(machine.submit(grouped("bob", 1001, "c")));
  EXPECT_EQ(uuids_of(machine.record("a")), uuids_of(machine.record("b")));
  EXPECT_EQ(machine.at("c"), TaskState::kQueued) << "nobody comes into a group of somebody else";
  ASSERT_TRUE(machine.on(event::Ended{"a", exited(0)}));
  EXPECT_EQ(machine.at("c"), TaskState::kQueued);
  ASSERT_TRUE(machine.on(event::Ended{"b", exited(0)}));
  EXPECT_EQ(machine.at("c"), TaskState::kStarting);
}

}  // namespace
}  // namespace drover::control

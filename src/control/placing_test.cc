// A state machine whose tasks are placed by others: the scheduler of a cluster.

#include "control/placing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/testing/machine.h"

namespace drover::control {
namespace {

using namespace testing;  // NOLINT: the machine
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Cluster : Machine {
  Cluster() : Machine(0) { state.placed_by_others = true; }

  Status place(const std::string& id, const std::string& node = "n1",
               std::optional<int> attempt = std::nullopt) {
    return on(event::Placed{id, node, {{"GPU-7"}}, attempt});
  }
  Status run(const std::string& id) {
    if (auto done = place(id); !done) return done;
    return on(event::Started{id, kNow});
  }
  void restart() {
    Machine::restart();
    state.placed_by_others = true;
  }
};

TEST(Placing, WhoWaitsIsHandedOverAndStaysQueuedUntilItHasAPlace) {
  Cluster cluster;
  ASSERT_TRUE(cluster.submit(task("t", 4)));
  EXPECT_THAT(cluster.asked<action::Launch>(), ElementsAre("t"));
  EXPECT_EQ(cluster.at("t"), TaskState::kQueued);
  EXPECT_THAT(cluster.reasons("t"), ElementsAre(HasSubstr("the cluster was asked")));
  ASSERT_TRUE(cluster.place("t"));
  EXPECT_EQ(cluster.at("t"), TaskState::kStarting);
  EXPECT_EQ(cluster.record("t").node, "n1");
  EXPECT_THAT(uuids_of(cluster.record("t")), ElementsAre("GPU-7"));
  EXPECT_THAT(cluster.actions, IsEmpty());
  ASSERT_TRUE(cluster.on(event::Started{"t", kNow}));
  ASSERT_TRUE(cluster.on(event::Ended{"t", exited(3)}));
  EXPECT_EQ(cluster.at("t"), TaskState::kFailed);
  EXPECT_EQ(cluster.record("t").node, "n1") << "people look for it afterwards";
}

TEST(Placing, WhatIsSaidOfWhoWaitsIsSaidOn) {
  Cluster cluster;
  ASSERT_TRUE(cluster.submit(task("t", 4)));
  ASSERT_TRUE(cluster.on(event::Waits{"t", "0/2 nodes are available"}));
  EXPECT_THAT(cluster.reasons("t"), ElementsAre("0/2 nodes are available"));
  ASSERT_TRUE(cluster.place("t"));
  EXPECT_TRUE(cluster.state.said.empty());
  ASSERT_TRUE(cluster.on(event::Waits{"t", "pulling its image"}));
  EXPECT_EQ(cluster.state.said.size(), 1U);
  ASSERT_TRUE(cluster.on(event::Started{"t", kNow}));
  EXPECT_TRUE(cluster.state.said.empty());
  ASSERT_TRUE(cluster.on(event::Waits{"t", "late"}));
  ASSERT_TRUE(cluster.on(event::Waits{"nobody", "late"}));
  EXPECT_TRUE(cluster.state.said.empty());
}

TEST(Placing, NobodyIsAskedTwice) {
  Cluster cluster;
  ASSERT_TRUE(cluster.submit(task("a", 1)));
  ASSERT_TRUE(cluster.submit(task("b", 1)));
  EXPECT_THAT(cluster.asked<action::Launch>(), ElementsAre("b"));
  ASSERT_TRUE(cluster.on(event::Tick{}));
  EXPECT_THAT(cluster.asked<action::Launch>(), IsEmpty());
}

TEST(Placing, WhatIsHeldBackIsHandedOverWhenItMayStart) {
  Cluster cluster;
  auto later = task("later", 1);
  later.batch.begin = kNow + std::chrono::hours(1);
  ASSERT_TRUE(cluster.submit(later));
  EXPECT_THAT(cluster.asked<action::Launch>(), IsEmpty());
  ASSERT_TRUE(cluster.on(event::Tick{}, kNow + std::chrono::hours(1)));
  EXPECT_THAT(cluster.asked<action::Launch>(), ElementsAre("later"));
}

TEST(Placing, OfOneUserOnlySoManyWaitInTheCluster) {
  Cluster cluster;
  for (std::size_t i = 0; i <= kPlannedOfUser; ++i)
    ASSERT_TRUE(cluster.submit(task_of("ann", 1000, "t" + std::to_string(i), 1)));
  EXPECT_THAT(cluster.asked<action::Launch>(), IsEmpty()) << "the last one stands behind the others";
  EXPECT_THAT(cluster.reasons("t500"), ElementsAre(HasSubstr("stands behind")));
  ASSERT_TRUE(cluster.place("t0"));
  EXPECT_THAT(cluster.asked<action::Launch>(), ElementsAre("t500"));
}

TEST(Placing, MembersOfAGroupAskForTheSameGpus) {
  Cluster cluster;
  const auto member = [](const std::string& id, int gpus, uid_t owner = 1000) {
    auto made = task_of("u" + std::to_string(owner), owner, id, gpus);
    made.resources.group = "demo";
    return made;
  };
  ASSERT_TRUE(cluster.submit(member("one", 1)));
  ASSERT_TRUE(cluster.submit(member("more", 2)));
  EXPECT_THAT(cluster.asked<action::Launch>(), IsEmpty());
  EXPECT_THAT(cluster.reasons("more"), ElementsAre("it asks for other GPUs than its group has"));
  ASSERT_TRUE(cluster.submit(member("same", 1)));
  EXPECT_THAT(cluster.asked<action::Launch>(), ElementsAre("same"));
  ASSERT_TRUE(cluster.submit(member("bobs", 2, 1001)));
  EXPECT_THAT(cluster.asked<action::Launch>(), ElementsAre("bobs"));
  for (const auto* id : {"one", "same"}) ASSERT_TRUE(cluster.run(id));
  ASSERT_TRUE(cluster.on(event::Ended{"one", exited(0)}));
  EXPECT_THAT(cluster.asked<action::Launch>(), IsEmpty());
  ASSERT_TRUE(cluster.on(event::Ended{"same", exited(0)}));
  EXPECT_THAT(cluster.asked<action::Launch>(), ElementsAre("more"));
}

TEST(Placing, ASharesSizeIsTheTasksOwnWord) {
  Cluster cluster;
  auto half = task("half", 1);
  half.resources.share.milli = 500;
  ASSERT_TRUE(cluster.submit(half));
  ASSERT_TRUE(cluster.place("half"));
  EXPECT_EQ(cluster.record("half").gpus.at(0).milli, 500);
  auto part = task("part", 1);
  part.resources.share = {.memory_bytes = 1024};
  ASSERT_TRUE(cluster.submit(part));
  ASSERT_TRUE(cluster.place("part"));
  EXPECT_EQ(cluster.record("part").gpus.at(0).memory_bytes, 1024U);
}

TEST(Placing, WhoIsStoppedWhileItWaitsEndsWhenTheClusterHasLetGoOfIt) {
  Cluster cluster;
  ASSERT_TRUE(cluster.submit(task("t", 1)));
  ASSERT_TRUE(cluster.on(event::StopRequested{"t"}));
  EXPECT_THAT(cluster.asked<action::Stop>(), ElementsAre("t"));
  EXPECT_EQ(cluster.at("t"), TaskState::kStopping) << "it may have started in this moment";
  ASSERT_TRUE(cluster.place("t"));
  EXPECT_EQ(cluster.at("t"), TaskState::kStopping) << "told late";
  ASSERT_TRUE(cluster.on(event::LaunchFailed{"t", {ErrorKind::kConflict, "It was stopped before it ran"}}));
  EXPECT_EQ(cluster.at("t"), TaskState::kKilled);
}

TEST(Placing, WhatTheClusterRefusesFails) {
  Cluster cluster;
  ASSERT_TRUE(cluster.submit(task("t", 1)));
  ASSERT_TRUE(cluster.on(event::LaunchFailed{"t", {ErrorKind::kUnsupported, "no image"}, 0}));
  EXPECT_EQ(cluster.at("t"), TaskState::kFailed);
  EXPECT_THAT(cluster.record("t").reason, HasSubstr("no image"));
}

TEST(Placing, WhoMadeRoomWaitsAgainAndIsHandedOverAnew) {
  Cluster cluster;
  ASSERT_TRUE(cluster.submit(task("t", 1)));
  ASSERT_TRUE(cluster.run("t"));
  ASSERT_TRUE(cluster.on(event::Evicted{"t", "preempted by 'urgent'", 0}));
  EXPECT_EQ(cluster.at("t"), TaskState::kStopping);
  ASSERT_TRUE(cluster.on(event::Ended{"t", exited(143, true)}));
  EXPECT_EQ(cluster.at("t"), TaskState::kQueued);
  EXPECT_EQ(cluster.record("t").preemptions, 1);
  EXPECT_EQ(cluster.record("t").node, "");
  EXPECT_THAT(cluster.asked<action::Clean>(), ElementsAre("t"));
  EXPECT_THAT(cluster.asked<action::Launch>(), ElementsAre("t"));
  ASSERT_TRUE(cluster.place("t", "n1", 0));
  EXPECT_EQ(cluster.at("t"), TaskState::kQueued) << "news of the attempt before";
}

TEST(Placing, WhomANodeRefusesIsHandedOverAnewAsTheSameAttempt) {
  Cluster cluster;
  ASSERT_TRUE(cluster.submit(task("t", 1)));
  ASSERT_TRUE(cluster.place("t"));
  ASSERT_TRUE(cluster.on(event::PutBack{"t", {ErrorKind::kUnavailable, "UnexpectedAdmissionError"}, 0}));
  EXPECT_EQ(cluster.at("t"), TaskState::kQueued);
  EXPECT_EQ(attempt_of(cluster.record("t")), 0);
  EXPECT_THAT(cluster.asked<action::Launch>(), ElementsAre("t"));
}

TEST(Placing, AGangIsPutBackAsAWhole) {
  Cluster cluster;
  ASSERT_TRUE(cluster.submit(gang("g", 3, 1)));
  EXPECT_THAT(cluster.asked<action::Launch>(), ElementsAre("g-0", "g-1", "g-2"));
  ASSERT_TRUE(cluster.run("g-0"));
  ASSERT_TRUE(cluster.run("g-1"));
  ASSERT_TRUE(cluster.on(event::Evicted{"g-1", "its node is drained"}));
  EXPECT_THAT(cluster.asked<action::Stop>(), ElementsAre("g-1", "g-0", "g-2"));
  EXPECT_EQ(cluster.at("g-2"), TaskState::kStopping) << "it waited";
  for (const auto* id : {"g-0", "g-1"}) ASSERT_TRUE(cluster.on(event::Ended{id, exited(143, true)}));
  EXPECT_THAT(cluster.asked<action::Launch>(), IsEmpty());
  ASSERT_TRUE(cluster.on(event::LaunchFailed{"g-2", {ErrorKind::kConflict, "It was stopped before it ran"}}));
  EXPECT_THAT(cluster.asked<action::Launch>(), ElementsAre("g-0", "g-1", "g-2"));
  for (const auto* id : {"g-0", "g-1", "g-2"}) EXPECT_EQ(cluster.at(id), TaskState::kQueued) << id;
}

TEST(Placing, AfterARestartWhatWasNeverHandedOverIsSo) {
  Cluster cluster;
  ASSERT_TRUE(cluster.submit(task("t", 1)));
  cluster.restart();
  EXPECT_TRUE(cluster.record("t").asked);
  ASSERT_TRUE(cluster.on(event::NeverStarted{"t"}));
  EXPECT_THAT(cluster.asked<action::Launch>(), ElementsAre("t"));
  EXPECT_EQ(cluster.at("t"), TaskState::kQueued);
}

TEST(Placing, OneThatWasTakenUpAgainLearnsWhereItIs) {
  Cluster cluster;
  TaskRecord record;
  record.task = task("t", 1);
  ASSERT_TRUE(cluster.on(event::Adopted{{record}}));
  ASSERT_TRUE(cluster.run("t"));
  EXPECT_EQ(cluster.at("t"), TaskState::kRunning);
  EXPECT_EQ(cluster.record("t").node, "n1");
  ASSERT_TRUE(cluster.place("t", "n2"));
  EXPECT_EQ(cluster.record("t").node, "n1") << "it stays";
}

/// Each of two GPUs.
event::NodesChanged nodes(const std::vector<std::string>& names) {
  std::vector<placement::Node> all;
  for (const auto& name : names) {
    all.push_back(node_with(2));
    all.back().name = name;
    all.back().attributes["hostname"] = {name};
  }
  return {std::make_shared<const std::vector<placement::Node>>(std::move(all))};
}

TEST(Placing, WhatNoNodeCouldHoldIsRefusedOnceThereAreAny) {
  Cluster cluster;
  ASSERT_TRUE(cluster.submit(task("before", 3))) << "nodes may come when they are needed";
  ASSERT_TRUE(cluster.on(nodes({"n1"})));
  EXPECT_FALSE(cluster.submit(task("large", 3)));
  ASSERT_TRUE(cluster.submit(task("small", 2)));
  ASSERT_TRUE(cluster.on(event::Placed{"small", "n1", {{"GPU-0"}, {"GPU-1"}}}));
  EXPECT_EQ(cluster.state.cluster.free("n1").gpus, 0);
  ASSERT_TRUE(cluster.on(nodes({})));
  EXPECT_EQ(cluster.state.cluster.size(), 2U) << "it has a task";
  ASSERT_TRUE(cluster.on(event::Ended{"small", exited(0)}));
  ASSERT_TRUE(cluster.on(nodes({})));
  EXPECT_EQ(cluster.state.cluster.size(), 1U);
}

/// The rules of those who were handed over by the last event.
std::vector<std::vector<workload::NodeRule>> rules_of(const Cluster& cluster) {
  std::vector<std::vector<workload::NodeRule>> rules;
  for (const auto& action : cluster.actions)
    if (const auto* launch = std::get_if<action::Launch>(&action)) rules.push_back(launch->node_rules);
  return rules;
}

event::ServicesChanged web(int instances, std::vector<workload::PlacementConstraint> constraints) {
  workload::Service service;
  service.id = "/web";
  service.task = task("web", 0);
  service.instances = instances;
  service.constraints = std::move(constraints);
  return {.put = {service}};
}

TEST(Placing, ConstraintsOfServicesAreHandedOver) {
  Cluster cluster;
  ASSERT_TRUE(cluster.on(nodes({"r1", "r2", "s1"})));
  ASSERT_TRUE(cluster.on(web(3, {{"hostname", workload::ConstraintKind::kLike, "r.*"},
                                 {"hostname", workload::ConstraintKind::kMaxPer, "2"}})));
  const auto rules = rules_of(cluster);
  ASSERT_THAT(rules, SizeIs(3));
  std::multiset<int> sets;
  for (const auto& of_task : rules) {
    ASSERT_THAT(of_task, SizeIs(2));
    EXPECT_THAT(of_task[0].values, ElementsAre("r1", "r2"));
    sets.insert(of_task[1].number);
  }
  EXPECT_THAT(sets, ElementsAre(1, 1, 2));
  // Who waits learns of a node that he may have, and of no other.
  ASSERT_TRUE(cluster.on(nodes({"r1", "r2", "s1", "s2"})));
  EXPECT_THAT(cluster.actions, IsEmpty());
  ASSERT_TRUE(cluster.on(nodes({"r1", "r2", "r3", "s1", "s2"})));
  EXPECT_THAT(cluster.asked<action::Stop>(), SizeIs(3));
}

TEST(Placing, OfConstraintsThatCannotBeSaidNobodyIsHandedOver) {
  Cluster cluster;
  const auto refused = cluster.on(web(1, {{"hostname", workload::ConstraintKind::kMaxPer, "2"},
                                          {"rack", workload::ConstraintKind::kMaxPer, "4"}}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().path, "/constraints");
}

TEST(Placing, PortsThatAreNotNamedAreNumbersOfTheTasksOwnAddress) {
  Cluster cluster;
  auto server = task("t", 0);
  server.network.ports.resize(4);
  server.network.ports[1].host_port = 31007;
  server.network.ports[2].container_port = 8080;
  ASSERT_TRUE(cluster.submit(server));
  const auto& ports = cluster.record("t").ports;
  ASSERT_THAT(ports, SizeIs(4));
  EXPECT_EQ(ports[1], 31007);
  EXPECT_EQ(ports[2], 8080);
  EXPECT_EQ(std::set<int>(ports.begin(), ports.end()).size(), 4U);
  server.id = "many";
  server.network.ports.resize(5000);
  ASSERT_TRUE(cluster.submit(server));
  EXPECT_EQ(cluster.record("many").ports.back(), 0) << "there are no more, and nobody looks for one for ever";
}

}  // namespace
}  // namespace drover::control

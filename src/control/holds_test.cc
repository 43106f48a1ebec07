// Ports and constraints: what keeps work waiting that placement knows nothing of.

#include "control/holds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/testing/services.h"

namespace drover::control {
namespace {

using namespace testing;  // NOLINT: the machine
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

workload::Task with_ports(const std::string& id, const std::vector<int>& host_ports) {
  auto result = task(id, 0);
  for (const int port : host_ports) result.network.ports.push_back({.host_port = port});
  return result;
}

TEST(Holds, EveryTaskGetsPortsOfItsOwn) {
  Services machine(0);
  std::set<int> given;
  for (int i = 0; i < 20; ++i) {
    const auto id = "t" + std::to_string(i);
    ASSERT_TRUE(machine.submit(with_ports(id, {0, 0, 8080 + i})));
    const auto& ports = machine.record(id).ports;
    ASSERT_THAT(ports, SizeIs(3));
    EXPECT_EQ(ports[2], 8080 + i);
    EXPECT_THAT(std::vector(ports.begin(), ports.begin() + 2), Each(AllOf(Ge(kFirstPort), Le(kLastPort))));
    for (const int port : ports) EXPECT_TRUE(given.insert(port).second) << port;
  }
}

TEST(Holds, WhoWantsAPortThatIsTakenWaitsForIt) {
  Services machine(0);
  ASSERT_TRUE(machine.submit(with_ports("first", {9000})));
  ASSERT_TRUE(machine.submit(with_ports("second", {9000})));
  ASSERT_TRUE(machine.submit(with_ports("third", {9000})));
  ASSERT_TRUE(machine.submit(with_ports("other", {9001})));
  EXPECT_EQ(machine.at("other"), TaskState::kStarting);
  EXPECT_THAT(machine.reasons("second"),
              ElementsAre("it wants the port 9000 of this machine, which another task has"));
  machine.obey();
  machine.fails("first", 0);
  EXPECT_EQ(machine.at("second"), TaskState::kStarting);
  EXPECT_EQ(machine.at("third"), TaskState::kQueued);
}

TEST(Holds, PortsOfStrangeProgramsAreNotGivenAway) {
  Services machine(0);
  auto node = machine.state.machine();
  for (int port = kFirstPort; port < kLastPort; ++port) node.foreign_ports.insert(port);
  ASSERT_TRUE(machine.on(event::NodeChanged{node}, machine.now));
  ASSERT_TRUE(machine.submit(with_ports("named", {kFirstPort + 7})));
  EXPECT_THAT(machine.reasons("named"),
              ElementsAre("it wants the port 31007 of this machine, which another program has"));
  ASSERT_TRUE(machine.submit(with_ports("any", {0})));
  EXPECT_THAT(machine.record("any").ports, ElementsAre(kLastPort));
  ASSERT_TRUE(machine.submit(with_ports("one too many", {0})));
  EXPECT_THAT(machine.reasons("one too many"), ElementsAre("no port from 31000 to 32000 is free"));
  node.foreign_ports.clear();
  ASSERT_TRUE(machine.on(event::NodeChanged{node}, machine.now));
  EXPECT_THAT(machine.record("named").ports, ElementsAre(kFirstPort + 7));
  EXPECT_EQ(machine.at("one too many"), TaskState::kStarting);
}

TEST(Holds, AnyPortIsNeverANamedOne) {
  Services machine(2);
  ASSERT_TRUE(machine.submit(task("busy", 2)));
  machine.obey();
  // Both wait for a GPU, and start in one plan.
  auto any = task("any", 1), named = task("named", 1);
  any.network.ports.resize(200);
  for (int port = kFirstPort; port < kFirstPort + 60; ++port)
    named.network.ports.push_back({.host_port = port});
  ASSERT_TRUE(machine.submit(any));
  ASSERT_TRUE(machine.submit(named));
  ASSERT_EQ(machine.at("named"), TaskState::kQueued);
  machine.fails("busy", 0);
  ASSERT_EQ(machine.at("any"), TaskState::kStarting);
  ASSERT_EQ(machine.at("named"), TaskState::kStarting);
  for (const int port : machine.record("named").ports)
    EXPECT_THAT(machine.record("any").ports, ::testing::Not(::testing::Contains(port)));
}

TEST(Holds, APortAskedForTwiceIsRefused) {
  Services machine(0);
  const auto refused = machine.submit(with_ports("both", {9000, 9000}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kInvalid);
  auto names = with_ports("names", {9000, 9000});
  names.network.ports[1].protocol = workload::PortProtocol::kUdp;
  EXPECT_TRUE(machine.submit(names));
}

TEST(Holds, LowPortsAreForRoot) {
  Services machine(0);
  auto low = with_ports("low", {80});
  low.owner = 1000;
  const auto refused = machine.submit(low);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kPermissionDenied);
  low.owner = 0;
  EXPECT_TRUE(machine.submit(low));
}

TEST(Holds, TwoWhoExcludeEachOtherDoNotStartTogether) {
  Services machine(1);
  ASSERT_TRUE(machine.submit(task("busy", 1)));
  auto a = with_ports("a", {9000}), b = with_ports("b", {9000});
  a.resources.gpus = {{1, {}}};
  ASSERT_TRUE(machine.submit(a));
  ASSERT_TRUE(machine.submit(b));
  EXPECT_EQ(machine.at("b"), TaskState::kQueued) << "the port is kept for who came first";
  machine.obey();
  machine.fails("busy", 0);
  EXPECT_EQ(machine.at("a"), TaskState::kStarting);
  EXPECT_EQ(machine.at("b"), TaskState::kQueued);
}

TEST(Holds, APortRangeThatIsUsedUpIsSaid) {
  Services machine(0);
  const auto most = static_cast<std::size_t>(kLastPort - kFirstPort + 1);
  ASSERT_TRUE(machine.submit(with_ports("all", std::vector<int>(most, 0))));
  EXPECT_THAT(std::set<int>(machine.record("all").ports.begin(), machine.record("all").ports.end()),
              SizeIs(most));
  ASSERT_TRUE(machine.submit(with_ports("one", {0})));
  EXPECT_THAT(machine.reasons("one"), ElementsAre("no port from 31000 to 32000 is free"));
}

TEST(Holds, AUniqueServiceHasOneInstanceHere) {
  Services machine(0);
  auto web = service("/web", 3);
  web.constraints = {{"hostname", workload::ConstraintKind::kUnique, ""}};
  ASSERT_TRUE(machine.put(web));
  machine.obey();
  EXPECT_EQ(machine.in("/web", TaskState::kRunning), 1u);
  EXPECT_EQ(machine.in("/web", TaskState::kQueued), 2u);
  EXPECT_THAT(machine.reasons(machine.instances("/web").back()->task.id),
              ElementsAre("no two of its instances may have the same hostname, and one is on 'here'"));
  machine.fails(machine.instances("/web").front()->task.id);
  EXPECT_EQ(machine.in("/web", TaskState::kStarting), 1u) << "the next takes its place";
}

}  // namespace
}  // namespace drover::control

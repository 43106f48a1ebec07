#include "kube/scheduler/scheduler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "placement/testing/clusters.h"

namespace drover::kube::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr TimePoint kMoment{std::chrono::hours(1)};

Node gpu_node(const std::string& name, std::int64_t gpus = 4) {
  Node node{.name = name};
  node.labels = {{"kubernetes.io/hostname", name}};
  node.taints = std::make_shared<const Taints>();
  node.allocatable = {.cpu = 16'000, .memory = 64LL << 30, .others = {{kGpuResource, gpus}}};
  node.most_pods = 110;
  return node;
}

Node tainted_node(Node node, const std::string& key) {
  node.taints = std::make_shared<const Taints>(Taints{{key, "", "NoSchedule"}});
  return node;
}

/// Every two GPUs "<name>-0" … are joined by `nvlinks`, or none.
gpu::Inventory gpus_of(const std::string& name, int count, int nvlinks = 0) {
  return placement::testing::node(name, {.count = count, .nvlinks = nvlinks}).inventory;
}

struct Wants {
  std::int64_t gpus = 0;
  std::int64_t priority = 0;
  std::string scheduler = "drover";
};

Pod asking_pod(const std::string& name, const Wants& wants) {
  PodTemplate made{.scheduler_name = wants.scheduler, .priority = wants.priority};
  made.requests = {.cpu = 1000, .memory = 1 << 20};
  if (wants.gpus > 0) made.requests.others[kGpuResource] = wants.gpus;
  Pod pod{.uid = "uid-" + name, .name_space = "team", .name = name};
  pod.created = TimePoint(std::chrono::seconds(10));
  pod.labels = std::make_shared<const Labels>();
  pod.made_from = std::make_shared<const PodTemplate>(std::move(made));
  return pod;
}

Pod bound_pod(Pod pod, const std::string& node, std::vector<std::string> gpus = {}) {
  pod.node_name = node;
  pod.gpus = std::move(gpus);
  return pod;
}

template <typename Change>
Pod changed(Pod pod, const Change& change) {
  auto made = *pod.made_from;
  change(made);
  pod.made_from = std::make_shared<const PodTemplate>(std::move(made));
  return pod;
}

/// "train on a: a-0 a-1" for each that starts.
std::vector<std::string> started(const Round& round) {
  std::vector<std::string> lines;
  for (const auto& start : round.starts)
    for (const auto& binding : start.bindings) {
      auto line = fmt::format("{} on {}:", binding.pod.name, binding.node);
      for (const auto& gpu : binding.gpus) line += " " + gpu;
      lines.push_back(std::move(line));
    }
  return lines;
}

std::vector<std::string> reasons_of(const Round& round, const std::string& name) {
  const auto found = round.waiting.find("uid-" + name);
  return found == round.waiting.end() ? std::vector<std::string>{} : placement::describe(found->second);
}

TEST(Scheduler, BindsToTheBestJoinedGpusThatAreFree) {
  Scheduler scheduler;
  auto gpus = gpus_of("a", 4);
  gpus.links[1][3].nvlinks = gpus.links[3][1].nvlinks = 2;
  scheduler.put_node(gpu_node("a"), gpus);
  scheduler.put_pod({asking_pod("train", {.gpus = 2})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("train on a: a-1 a-3"));
  scheduler.put_pod({asking_pod("next", {.gpus = 2})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("next on a: a-0 a-2"));
  scheduler.put_pod({asking_pod("late", {.gpus = 1})});
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "late"),
              ElementsAre("1 GPU is wanted and 0 of 4 are free"));
}

TEST(Scheduler, DecidedIsDoneUntilItHasFailed) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 2), gpus_of("a", 2));
  const auto pod = asking_pod("train", {.gpus = 2});
  scheduler.put_pod({pod});
  EXPECT_THAT(started(scheduler.decide(kMoment)), SizeIs(1));
  scheduler.put_pod({pod});  // its status has changed, and nobody has seen the binding yet
  EXPECT_THAT(started(scheduler.decide(kMoment)), IsEmpty());
  scheduler.failed("uid-train");
  EXPECT_THAT(started(scheduler.decide(kMoment)), SizeIs(1));
  scheduler.put_pod({bound_pod(pod, "a", {"a-0", "a-1"})});
  scheduler.failed("uid-train");  // too late: it is there
  EXPECT_THAT(started(scheduler.decide(kMoment)), IsEmpty());
  scheduler.remove_pod("uid-train");
  scheduler.put_pod({asking_pod("next", {.gpus = 2})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("next on a: a-0 a-1"));
}

TEST(Scheduler, SomebodyElseMayHaveBoundItElsewhere) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 1), gpus_of("a", 1));
  scheduler.put_node(gpu_node("b", 1), gpus_of("b", 1));
  const auto pod = asking_pod("train", {.gpus = 1});
  scheduler.put_pod({pod});
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("train on a: a-0"));
  scheduler.put_pod({bound_pod(pod, "b")});
  scheduler.put_pod({asking_pod("next", {.gpus = 1})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("next on a: a-0"));
}

TEST(Scheduler, PodsOfOthersTakeWhatTheyHave) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  scheduler.put_pod({bound_pod(asking_pod("unsaid", {.gpus = 1, .scheduler = "default-scheduler"}), "a")});
  scheduler.put_pod(
      {bound_pod(asking_pod("said", {.gpus = 1, .scheduler = "default-scheduler"}), "a", {"a-0"})});
  scheduler.put_pod({asking_pod("theirs", {.gpus = 1, .scheduler = "default-scheduler"})});
  scheduler.put_pod({asking_pod("ours", {.gpus = 2})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("ours on a: a-2 a-3"));
}

TEST(Scheduler, CountsGpusOfANodeThatDoesNotNameThem) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 2));
  scheduler.put_pod({asking_pod("one", {.gpus = 1})});
  scheduler.put_pod({asking_pod("two", {.gpus = 1})});
  scheduler.put_pod({asking_pod("three", {.gpus = 1})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), SizeIs(2));
}

TEST(Scheduler, GivesNoGpusThatANodeDoesNotOffer) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 0), gpus_of("a", 2));
  scheduler.put_pod({asking_pod("train", {.gpus = 1})});
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "train"),
              ElementsAre("1 GPU is wanted and 0 of 2 are free, 2 unfit"));
  scheduler.put_node(gpu_node("a", 1), gpus_of("a", 2));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("train on a: a-0"));
}

TEST(Scheduler, SaysWhatKeepsItOffEveryNode) {
  Scheduler scheduler;
  scheduler.put_node(tainted_node(gpu_node("a"), "dedicated"), gpus_of("a", 4));
  auto cordoned = gpu_node("b");
  cordoned.unschedulable = true;
  scheduler.put_node(cordoned, gpus_of("b", 4));
  scheduler.put_node(gpu_node("c", 1), gpus_of("c", 1));
  scheduler.put_pod({asking_pod("train", {.gpus = 2})});
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "train"),
              ElementsAre("3 nodes: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, "
                          "1 has fewer than 2 GPUs (has 1)"));
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("train on a: a-0 a-1"));
}

TEST(Scheduler, LeavesAloneWhatIsNotToBePlanned) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  scheduler.put_pod(
      {changed(asking_pod("gated", {.gpus = 1}), [](auto& made) { made.scheduling_gates = {"wait"}; })});
  auto ending = asking_pod("ending", {.gpus = 1});
  ending.terminating = true;
  scheduler.put_pod({ending});
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, IsEmpty());
  EXPECT_THAT(round.waiting, IsEmpty());
}

TEST(Scheduler, TwoThatWantTheSamePortAreNotOnOneNode) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  const auto listens = [](auto& made) { made.ports = {{.port = 80}}; };
  scheduler.put_pod({changed(asking_pod("one", {}), listens)});
  scheduler.put_pod({changed(asking_pod("two", {}), listens)});
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, SizeIs(1));
  EXPECT_TRUE(round.again);
  const auto next = scheduler.decide(kMoment);
  EXPECT_THAT(next.starts, IsEmpty());
  EXPECT_FALSE(next.again);
  EXPECT_THAT(next.waiting, SizeIs(1));
  EXPECT_THAT(placement::describe(next.waiting.begin()->second),
              ElementsAre("node(s) didn't have free ports for the requested pod ports"));
}

TEST(Scheduler, EvictsTheFewestOnceForWhomIsMoreUrgent) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  scheduler.put_pod({bound_pod(asking_pod("small", {.gpus = 1}), "a", {"a-0"})});
  scheduler.put_pod({bound_pod(asking_pod("large", {.gpus = 3}), "a", {"a-1", "a-2", "a-3"})});
  scheduler.put_pod({asking_pod("urgent", {.gpus = 2, .priority = 5})});
  auto round = scheduler.decide(kMoment);
  ASSERT_THAT(round.evictions, SizeIs(1));
  EXPECT_EQ(round.evictions[0].pod.name, "large");
  EXPECT_EQ(round.evictions[0].job, "uid-urgent");
  EXPECT_THAT(scheduler.decide(kMoment).evictions, IsEmpty());
  scheduler.failed("uid-large");
  EXPECT_THAT(scheduler.decide(kMoment).evictions, SizeIs(1));
  auto ending = bound_pod(asking_pod("large", {.gpus = 3}), "a", {"a-1", "a-2", "a-3"});
  ending.terminating = true;
  scheduler.put_pod({ending});
  EXPECT_THAT(scheduler.decide(kMoment).evictions, IsEmpty());
  scheduler.remove_pod("uid-large");
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("urgent on a: a-1 a-2"));
}

TEST(Scheduler, ANodeThatIsGoneTakesNothingAndComesBack) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  scheduler.put_pod({bound_pod(asking_pod("old", {.gpus = 1}), "a", {"a-0"})});
  scheduler.remove_node("a");
  scheduler.put_pod({asking_pod("new", {.gpus = 1})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), IsEmpty());
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("new on a: a-1"));
}

TEST(Scheduler, PodsMayBeKnownBeforeTheirNodes) {
  Scheduler scheduler;
  scheduler.put_pod({bound_pod(asking_pod("old", {.gpus = 1}), "a", {"a-0"})});
  scheduler.put_pod({bound_pod(asking_pod("unsaid", {.gpus = 1}), "a")});
  scheduler.put_pod({asking_pod("new", {.gpus = 2})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), IsEmpty());
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("new on a: a-2 a-3"));
}

TEST(Scheduler, WhoBeginsAnewDecidesTheSame) {
  for (const bool backwards : {false, true}) {
    Scheduler scheduler;
    std::vector<std::string> names{"a", "b", "c"};
    if (backwards) std::ranges::reverse(names);
    for (const auto& name : names) {
      scheduler.put_node(gpu_node(name), gpus_of(name, 4));
      scheduler.put_pod({asking_pod("p" + name, {.gpus = 2})});
    }
    EXPECT_THAT(started(scheduler.decide(kMoment)),
                UnorderedElementsAre("pa on a: a-0 a-1", "pb on a: a-2 a-3", "pc on b: b-0 b-1"))
        << backwards;
  }
}

GangMember of_gang(const std::string& name, int size, std::int64_t rank = 0) {
  return {.gang = {GangKind::kDrover, "team", name}, .rank = {rank}, .size = size};
}

PodObject gang_pod(const std::string& name, int size, std::int64_t rank, const Wants& wants) {
  return {asking_pod(fmt::format("{}-{}", name, rank), wants), of_gang(name, size, rank)};
}

TEST(SchedulerGangs, StartTogetherOrNotAtAll) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  scheduler.put_node(gpu_node("b"), gpus_of("b", 4));
  scheduler.put_pod(gang_pod("train", 3, 0, {.gpus = 2}));
  scheduler.put_pod(gang_pod("train", 3, 1, {.gpus = 2}));
  auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, IsEmpty());
  EXPECT_THAT(reasons_of(round, "train-0"), ElementsAre("waits for 1 of 3 pods of the gang 'team/train'"));
  scheduler.put_pod({bound_pod(asking_pod("other", {.gpus = 3}), "a", {"a-0", "a-1", "a-2"})});
  scheduler.put_pod(gang_pod("train", 3, 2, {.gpus = 2}));
  round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, IsEmpty());
  EXPECT_THAT(round.order, SizeIs(3));
  scheduler.remove_pod("uid-other");
  EXPECT_THAT(started(scheduler.decide(kMoment)),
              ElementsAre("train-0 on a: a-0 a-1", "train-1 on a: a-2 a-3", "train-2 on b: b-0 b-1"));
}

TEST(SchedulerGangs, WhatIsHalfStartedIsFinishedFirst) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  auto half = gang_pod("train", 2, 0, {.gpus = 2});
  half.pod = bound_pod(half.pod, "a", {"a-0", "a-1"});
  scheduler.put_pod(half);
  auto early = asking_pod("early", {.gpus = 2});
  early.created = TimePoint(std::chrono::seconds(1));
  scheduler.put_pod({early});
  scheduler.put_pod(gang_pod("train", 2, 1, {.gpus = 2}));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("train-1 on a: a-2 a-3"));
}

TEST(SchedulerGangs, AreVictimsAsAWhole) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  for (int rank = 0; rank < 2; ++rank) {
    auto member = gang_pod("train", 2, rank, {.gpus = 2});
    member.pod =
        bound_pod(member.pod, "a", {fmt::format("a-{}", 2 * rank), fmt::format("a-{}", 2 * rank + 1)});
    scheduler.put_pod(member);
  }
  scheduler.put_pod({asking_pod("urgent", {.gpus = 1, .priority = 5})});
  EXPECT_THAT(scheduler.decide(kMoment).evictions, SizeIs(2));
  EXPECT_THAT(scheduler.decide(kMoment).evictions, IsEmpty());
}

TEST(SchedulerGangs, WhoKeepEachOtherOffAreSpread) {
  Scheduler scheduler;
  for (const auto* name : {"a", "b"}) scheduler.put_node(gpu_node(name), gpus_of(name, 4));
  const auto listens = [](auto& made) { made.ports = {{.port = 80}}; };
  for (int rank = 0; rank < 2; ++rank) {
    auto member = gang_pod("train", 2, rank, {.gpus = 1});
    member.pod = changed(member.pod, listens);
    scheduler.put_pod(member);
  }
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("train-0 on a: a-0", "train-1 on b: b-0"));
  for (int rank = 0; rank < 2; ++rank) {
    auto member = gang_pod("more", 2, rank, {.gpus = 1});
    member.pod = changed(member.pod, listens);
    scheduler.put_pod(member);
  }
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, IsEmpty());
  EXPECT_FALSE(round.again);
}

TEST(SchedulerGangs, StayInOneDomainOfTheirTopology) {
  Scheduler scheduler;
  for (const auto* name : {"a", "b", "c", "d"}) {
    auto node = gpu_node(name);
    node.labels["rack"] = *name <= 'b' ? "r1" : "r2";
    scheduler.put_node(node, gpus_of(name, 4));
  }
  scheduler.put_pod({bound_pod(asking_pod("other", {.gpus = 1}), "a", {"a-0"})});
  const Resource groups{"scheduling.x-k8s.io", "v1alpha1", "podgroups"};
  for (int rank = 0; rank < 2; ++rank) {
    auto member = gang_pod("train", 2, rank, {.gpus = 4});
    member.gang->size.reset();
    member.gang->object = GangObject{groups, "PodGroup", "train"};
    scheduler.put_pod(member);
  }
  GangGroup group;
  group.minimum = 2;
  group.topology_key = "rack";
  scheduler.gangs().put_object(groups, "team", "train", group);
  EXPECT_THAT(started(scheduler.decide(kMoment)),
              ElementsAre("train-0 on c: c-0 c-1 c-2 c-3", "train-1 on d: d-0 d-1 d-2 d-3"));
}

TEST(SchedulerQueues, HoldPodsToTheirLimits) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  Sharing sharing;
  sharing.rules.queues["small"] = {.path = "small", .limit = {.gpu_milli = 2000}};
  scheduler.set_sharing(sharing);
  scheduler.put_pod({.pod = asking_pod("one", {.gpus = 2}), .queues = {.own = "small", .foreign = {}}});
  scheduler.put_pod({.pod = asking_pod("two", {.gpus = 1}), .queues = {.own = "small", .foreign = {}}});
  scheduler.put_pod({.pod = asking_pod("lost", {.gpus = 1}), .queues = {.own = "nowhere", .foreign = {}}});
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, SizeIs(1));
  EXPECT_THAT(reasons_of(round, "two"), SizeIs(1));
  EXPECT_THAT(reasons_of(round, "lost"), ElementsAre(testing::HasSubstr("nowhere")));
  const auto waiters = scheduler.waiters(round);
  ASSERT_THAT(waiters, SizeIs(2));
  for (const auto& waiter : waiters)
    if (waiter.pod.name == "two") EXPECT_EQ(waiter.why.queue, "small");
}

/// GPUs "<node>-0" … as devices "gpu-0" …, of two models in turn.
ResourceSlice slice_of(const std::string& node, int gpus) {
  ResourceSlice slice{.name = "slice-" + node, .driver = "gpu.example", .pool = node};
  slice.nodes.node_name = node;
  for (int i = 0; i < gpus; ++i) {
    const auto attribute = [](const char* name, std::string value) {
      return std::make_shared<const DeviceAttribute>(DeviceAttribute{name, std::move(value)});
    };
    DeviceKind kind{.driver = slice.driver};
    kind.attributes = {attribute("model", i % 2 == 0 ? "even" : "odd"), attribute("type", "gpu"),
                       attribute("uuid", fmt::format("{}-{}", node, i))};
    slice.devices.push_back(
        {.name = fmt::format("gpu-{}", i), .kind = std::make_shared<const DeviceKind>(kind)});
  }
  return slice;
}

ResourceClaim claim_for(const std::string& pod, int count, const std::string& selector = "") {
  DeviceWish wish{.device_class = "gpu", .count = count};
  if (!selector.empty()) wish.selectors = {selector};
  ClaimSpec spec;
  spec.requests = {{"gpus", {wish}}};
  ResourceClaim claim{.uid = "claim-uid-" + pod, .name_space = "team", .name = "claim-" + pod};
  claim.owner_uid = "uid-" + pod;
  claim.spec = std::make_shared<const ClaimSpec>(spec);
  return claim;
}

PodObject claiming(const std::string& name) {
  PodObject object{asking_pod(name, {})};
  object.pod = changed(object.pod, [](auto& made) { made.resource_claims = {"gpus"}; });
  object.pod.claims = {{"gpus", "claim-" + name, true, true}};
  return object;
}

std::vector<std::string> devices_in(const Round& round) {
  std::vector<std::string> devices;
  for (const auto& start : round.starts)
    for (const auto& binding : start.bindings)
      for (const auto& claim : binding.claims)
        for (const auto& device : claim.allocation->devices)
          devices.push_back(fmt::format("{}: {}/{}", binding.pod.name, device.id.pool, device.id.device));
  return devices;
}

class SchedulerClaims : public testing::Test {
 protected:
  SchedulerClaims() {
    scheduler.put_device_class({.name = "gpu"});
    auto gpus = gpus_of("a", 4);
    gpus.links[1][3].nvlinks = gpus.links[3][1].nvlinks = 2;
    scheduler.put_node(gpu_node("a", 0), gpus);
    scheduler.put_slice(slice_of("a", 4));
  }

  Scheduler scheduler;
};

TEST_F(SchedulerClaims, GetTheBestJoinedDevices) {
  scheduler.put_claim(claim_for("one", 2));
  scheduler.put_pod(claiming("one"));
  EXPECT_THAT(devices_in(scheduler.decide(kMoment)), ElementsAre("one: a/gpu-1", "one: a/gpu-3"));
  scheduler.put_claim(claim_for("two", 2));
  scheduler.put_pod(claiming("two"));
  EXPECT_THAT(devices_in(scheduler.decide(kMoment)), ElementsAre("two: a/gpu-0", "two: a/gpu-2"));
  scheduler.put_claim(claim_for("late", 1));
  scheduler.put_pod(claiming("late"));
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "late"),
              ElementsAre("1 GPU is wanted and 0 of 4 are free"));
}

TEST_F(SchedulerClaims, HoldTheirDevicesUntilTheyAreDeallocated) {
  scheduler.put_claim(claim_for("one", 4));
  scheduler.put_pod(claiming("one"));
  const auto round = scheduler.decide(kMoment);
  ASSERT_THAT(devices_in(round), SizeIs(4));
  auto allocated = claim_for("one", 4);
  allocated.allocation =
      std::make_shared<const ClaimAllocation>(*round.starts[0].bindings[0].claims[0].allocation);
  scheduler.put_claim(allocated);
  scheduler.remove_pod("uid-one");  // and its claim is still allocated
  scheduler.put_claim(claim_for("two", 1));
  scheduler.put_pod(claiming("two"));
  scheduler.put_pod({asking_pod("limits", {.gpus = 1})});
  EXPECT_THAT(scheduler.decide(kMoment).starts, IsEmpty());
  scheduler.put_claim(claim_for("one", 4));
  EXPECT_THAT(scheduler.decide(kMoment).starts, SizeIs(testing::Ge(1U)));
}

TEST_F(SchedulerClaims, WaitForTheClaimAndSayWhichIsNotRight) {
  auto pod = claiming("one");
  pod.pod.claims[0].claim.clear();
  scheduler.put_pod(pod);
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "one"),
              ElementsAre("waits for its claim 'gpus' to be made"));
  scheduler.put_pod(claiming("one"));
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "one"),
              ElementsAre("resourceclaim \"claim-one\" not found"));
  scheduler.put_claim(claim_for("one", 1, "device.attributes['gpu.example'].nothing == 'x'"));
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "one"), SizeIs(1));
  scheduler.put_claim(claim_for("one", 1, "device.attributes['gpu.example'].model == 'odd'"));
  EXPECT_THAT(devices_in(scheduler.decide(kMoment)), ElementsAre("one: a/gpu-1"));
}

TEST_F(SchedulerClaims, ParticularDevicesMayBeOnANodeThatIsNotTheFirst) {
  scheduler.put_node(gpu_node("b", 0), gpus_of("b", 4));
  scheduler.put_slice(slice_of("b", 4));
  const auto odd = "device.attributes['gpu.example'].model == 'odd'";
  for (const auto* name : {"one", "two"}) {
    scheduler.put_claim(claim_for(name, 2, odd));
    scheduler.put_pod(claiming(name));
    EXPECT_THAT(scheduler.decide(kMoment).starts, SizeIs(1));
  }
  scheduler.put_claim(claim_for("three", 1, odd));
  scheduler.put_pod(claiming("three"));
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, IsEmpty());
  EXPECT_FALSE(round.again);
  EXPECT_THAT(round.waiting, SizeIs(1));
}

TEST_F(SchedulerClaims, AreFreeAgainWhenTheirPodCouldNotBeBound) {
  scheduler.put_claim(claim_for("one", 4));
  scheduler.put_pod(claiming("one"));
  EXPECT_THAT(scheduler.decide(kMoment).starts, SizeIs(1));
  scheduler.failed("uid-one", kMoment + std::chrono::hours(1));
  scheduler.put_claim(claim_for("two", 4));
  scheduler.put_pod(claiming("two"));
  EXPECT_THAT(devices_in(scheduler.decide(kMoment)), SizeIs(4));
  // When they could not be taken back, they stand.
  scheduler.failed("uid-two", kMoment + std::chrono::hours(1), true);
  scheduler.put_claim(claim_for("three", 1));
  scheduler.put_pod(claiming("three"));
  EXPECT_THAT(scheduler.decide(kMoment).starts, IsEmpty());
}

}  // namespace
}  // namespace drover::kube::scheduler

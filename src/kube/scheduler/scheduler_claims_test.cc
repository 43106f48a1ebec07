#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "kube/scheduler/scheduler.h"
#include "kube/scheduler/testing/objects.h"

namespace drover::kube::scheduler {
namespace {

using testing::asking_pod;
using testing::changed;
using testing::claim_for;
using testing::claiming;
using testing::devices_in;
using ::testing::ElementsAre;
using testing::gpu_node;
using testing::gpus_of;
using ::testing::IsEmpty;
using testing::kMoment;
using testing::reasons_of;
using ::testing::SizeIs;
using testing::slice_of;
using testing::started;

class SchedulerClaims : public ::testing::Test {
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
  EXPECT_THAT(scheduler.decide(kMoment).starts, SizeIs(::testing::Ge(1U)));
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

TEST_F(SchedulerClaims, MayBeWhereNothingIsTakenThoughManyFullerNodesHaveTheNumberFree) {
  const auto odd = "device.attributes['gpu.example'].model == 'odd'";
  const auto take_both = [&](const std::string& name) {
    scheduler.put_claim(claim_for(name, 2, odd));
    scheduler.put_pod(claiming(name));
    EXPECT_THAT(scheduler.decide(kMoment).starts, SizeIs(1)) << name;
  };
  take_both("first");
  for (int i = 0; i < 140; ++i) {
    const auto name = fmt::format("b{:03}", i);
    scheduler.put_node(gpu_node(name, 0), gpus_of(name, 4));
    scheduler.put_slice(slice_of(name, 4));
    take_both("pod-" + name);
  }
  scheduler.put_node(gpu_node("z", 0), gpus_of("z", 4));
  scheduler.put_slice(slice_of("z", 4));
  take_both("last");
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

/// Its GPUs are for limits too.
class SchedulerLimitsByClaim : public SchedulerClaims {
 protected:
  SchedulerLimitsByClaim() { scheduler.put_device_class({.name = "gpu", .extended_resource = kGpuResource}); }

  static PodObject asking(const std::string& name, std::int64_t gpus,
                          const std::string& resource = kGpuResource) {
    return {changed(asking_pod(name, {}), [&](auto& made) {
      made.requests.others = {{resource, gpus}};
      made.containers = {{.name = "main", .names = {"cpu", resource}, .amounts = {{resource, gpus}}}};
    })};
  }

  /// What the API server shows of the claim that was decided on.
  static ResourceClaim made_of(const Binding& binding) {
    const auto& decision = binding.claims.at(0);
    ResourceClaim claim{
        .uid = "real-" + binding.pod.name, .name_space = "team", .name = "real-" + binding.pod.name};
    claim.owner_uid = binding.pod.uid;
    claim.for_extended_resources = true;
    claim.spec = std::make_shared<const ClaimSpec>(decision.made->spec);
    return claim;
  }
  static ResourceClaim allocated_of(const Binding& binding) {
    auto claim = made_of(binding);
    claim.allocation = std::make_shared<const ClaimAllocation>(*binding.claims.at(0).allocation);
    return claim;
  }

  Binding decided() {
    const auto round = scheduler.decide(kMoment);
    EXPECT_THAT(round.starts, SizeIs(1));
    return round.starts.empty() ? Binding{} : round.starts[0].bindings.at(0);
  }
};

TEST_F(SchedulerLimitsByClaim, GetTheBestJoinedDevices) {
  scheduler.put_pod(asking("one", 2));
  const auto binding = decided();
  EXPECT_THAT(binding.gpus, IsEmpty());
  ASSERT_THAT(binding.claims, SizeIs(1));
  ASSERT_TRUE(binding.claims[0].made);
  EXPECT_EQ(binding.claims[0].name, "");
  EXPECT_EQ(binding.claims[0].made->mappings.at(0).request, "container-0-request-1");
  EXPECT_EQ(binding.claims[0].allocation->devices.at(0).id.device, "gpu-1");
  EXPECT_EQ(binding.claims[0].allocation->devices.at(1).id.device, "gpu-3");
  // By the class' own name for them it is the same.
  scheduler.put_pod(asking("two", 2, "deviceclass.resource.kubernetes.io/gpu"));
  EXPECT_THAT(devices_in(scheduler.decide(kMoment)), ElementsAre("two: a/gpu-0", "two: a/gpu-2"));
  scheduler.put_pod(asking("late", 1));
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "late"),
              ElementsAre("1 GPU is wanted and 0 of 4 are free"));
}

TEST_F(SchedulerLimitsByClaim, AreCountedOnceFromTheDecisionToTheEnd) {
  const auto others_get = [&](int count) {
    std::vector<std::string> names;
    for (int i = 0; i < count + 1; ++i) {
      names.push_back(fmt::format("other-{}", i));
      scheduler.put_pod({asking(names.back(), 1)});
    }
    EXPECT_THAT(scheduler.decide(kMoment).starts, SizeIs(static_cast<std::size_t>(count)));
    for (const auto& name : names) scheduler.remove_pod("uid-" + name);
  };
  scheduler.put_pod(asking("one", 2));
  const auto binding = decided();
  others_get(2);
  scheduler.put_claim(made_of(binding));
  others_get(2);
  auto bound = asking("one", 2);
  bound.pod.node_name = "a";
  scheduler.put_pod(bound);  // before its claim is seen
  others_get(2);
  scheduler.put_claim(allocated_of(binding));
  others_get(2);
  scheduler.failed("uid-one");  // too late: it is there
  others_get(2);
  scheduler.remove_pod("uid-one");
  others_get(2);
  scheduler.remove_claim("real-one");
  others_get(4);
}

TEST_F(SchedulerLimitsByClaim, AreFreeAgainWhenTheirPodCouldNotBeBound) {
  scheduler.put_pod(asking("one", 4));
  decided();
  scheduler.failed("uid-one", kMoment + std::chrono::hours(1));
  scheduler.put_pod(asking("two", 4));
  decided();
  // When it could not be taken back, it stands until it is tried again.
  scheduler.failed("uid-two", kMoment + std::chrono::minutes(1), true);
  scheduler.put_pod(asking("three", 1));
  EXPECT_THAT(scheduler.decide(kMoment).starts, IsEmpty());
  scheduler.remove_pod("uid-three");
  EXPECT_THAT(scheduler.decide(kMoment + std::chrono::minutes(2)).starts, SizeIs(1));
  // Of a pod that is gone nothing is left.
  scheduler.remove_pod("uid-two");
  scheduler.put_pod(asking("four", 4));
  decided();
}

TEST_F(SchedulerLimitsByClaim, EndWithTheirDevicesTaints) {
  const auto taint = [&](const char* effect) {
    DeviceTaintRule rule{.name = "rule", .selects = true, .driver = {}, .pool = "a", .device = "gpu-1"};
    rule.taint = {"sick", "", effect};
    scheduler.put_taint_rule(rule);
    return scheduler.decide(kMoment).evictions;
  };
  std::vector<Binding> bindings;
  for (const auto* name : {"one", "two"}) {
    scheduler.put_pod(asking(name, 2));
    bindings.push_back(decided());
  }
  EXPECT_THAT(taint("NoExecute"), IsEmpty());  // nobody has them yet
  for (const auto& binding : bindings) {
    scheduler.put_claim(allocated_of(binding));
    auto bound = asking(binding.pod.name, 2);
    bound.pod.node_name = "a";
    scheduler.put_pod(bound);
  }
  auto theirs = asking("theirs", 2);
  theirs.pod = changed(theirs.pod, [](auto& made) { made.scheduler_name = "default-scheduler"; });
  theirs.pod.node_name = "a";
  scheduler.put_pod(theirs);
  const auto round = scheduler.decide(kMoment);
  ASSERT_THAT(round.evictions, SizeIs(1));
  EXPECT_EQ(round.evictions[0].pod.name, "one");
  EXPECT_EQ(round.evictions[0].device_taint, "sick");
  EXPECT_THAT(taint("NoExecute"), IsEmpty());  // once
  scheduler.failed("uid-one", kMoment + std::chrono::minutes(1));
  EXPECT_THAT(scheduler.decide(kMoment).evictions, IsEmpty());
  EXPECT_THAT(scheduler.decide(kMoment + std::chrono::minutes(2)).evictions, SizeIs(1));
  scheduler.failed("uid-one");
  EXPECT_THAT(taint("NoSchedule"), IsEmpty());
}

TEST_F(SchedulerLimitsByClaim, WhatIsLeftOfAnEarlierTryGoesFirst) {
  scheduler.put_pod(asking("one", 4));
  const auto binding = decided();
  Scheduler anew;
  anew.put_device_class({.name = "gpu", .extended_resource = kGpuResource});
  anew.put_node(gpu_node("a", 0));
  anew.put_slice(slice_of("a", 4));
  anew.put_pod(asking("one", 4));
  anew.put_claim(allocated_of(binding));
  const auto round = anew.decide(kMoment);
  EXPECT_THAT(round.starts, IsEmpty());
  ASSERT_THAT(round.left_claims, SizeIs(1));
  EXPECT_EQ(round.left_claims[0].claim, "real-one");
  EXPECT_EQ(round.left_claims[0].pod.name, "one");
  const auto later = kMoment + std::chrono::minutes(1);
  EXPECT_THAT(anew.decide(later).left_claims, IsEmpty()) << "one thing at a time";
  anew.undone(round.left_claims[0], kMoment + std::chrono::seconds(5));
  EXPECT_THAT(anew.decide(kMoment).left_claims, IsEmpty()) << "it may be told in a moment";
  ASSERT_THAT(anew.decide(later).left_claims, SizeIs(1));
  anew.undone(round.left_claims[0], kMoment + std::chrono::seconds(5));
  anew.remove_claim("real-one");
  EXPECT_THAT(anew.decide(kMoment).starts, SizeIs(1));
}

/// Somebody makes claims that say of another's pod that they are its own.
TEST_F(SchedulerLimitsByClaim, AreNobodysBusinessInAnotherNamespace) {
  auto forged = claim_for("one", 1);
  forged.uid = "forged";
  forged.name_space = "foreign";
  forged.for_extended_resources = true;
  scheduler.put_claim(forged);
  scheduler.put_pod(asking("one", 2));
  auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.left_claims, IsEmpty());
  ASSERT_THAT(devices_in(round), ElementsAre("one: a/gpu-1", "one: a/gpu-3"));
  // What a pod of his own gets by it is taken, and not the other's.
  forged.allocation =
      std::make_shared<const ClaimAllocation>(*round.starts[0].bindings[0].claims[0].allocation);
  scheduler.remove_pod("uid-one");
  scheduler.put_claim(forged);
  scheduler.put_pod(asking("one", 2));
  EXPECT_THAT(devices_in(scheduler.decide(kMoment)), ElementsAre("one: a/gpu-0", "one: a/gpu-2"));
  scheduler.put_pod(asking("late", 1));
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "late"),
              ElementsAre("1 GPU is wanted and 0 of 4 are free"));
}

TEST_F(SchedulerLimitsByClaim, AreTheNodesOwnWhereItOffersThem) {
  scheduler.put_node(gpu_node("b", 4), gpus_of("b", 4));
  for (const auto* name : {"one", "two"}) scheduler.put_pod(asking(name, 4));
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(started(round), ::testing::UnorderedElementsAre(::testing::EndsWith("on a:"),
                                                              ::testing::EndsWith("on b: b-0 b-1 b-2 b-3")));
  EXPECT_THAT(devices_in(round), SizeIs(4));
  // A class that cannot be had is no trouble for those that need none.
  scheduler.put_device_class({.name = "gpu", .selectors = {"nonsense("}, .extended_resource = kGpuResource});
  for (const auto* name : {"one", "two"}) scheduler.remove_pod(std::string("uid-") + name);
  for (const auto* name : {"three", "four"}) scheduler.put_pod(asking(name, 4));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre(::testing::EndsWith("on b: b-0 b-1 b-2 b-3")));
}

TEST_F(SchedulerLimitsByClaim, OfAnotherSchedulersPodsAreTheirClaims) {
  auto theirs = asking("theirs", 2);
  theirs.pod = changed(theirs.pod, [](auto& made) { made.scheduler_name = "default-scheduler"; });
  theirs.pod.node_name = "a";
  scheduler.put_pod(theirs);  // which of them it has is not known yet
  EXPECT_THAT(scheduler.decide(kMoment).starts, IsEmpty());
  scheduler.put_pod(asking("one", 2));
  const auto binding = decided();
  auto claim = allocated_of(binding);
  scheduler.remove_pod("uid-one");
  claim.owner_uid = "uid-theirs";
  scheduler.put_claim(claim);
  scheduler.put_pod(asking("two", 2));
  const auto other = decided();
  EXPECT_NE(other.claims.at(0).allocation->devices.at(0).id, claim.allocation->devices.at(0).id);
  scheduler.put_pod(asking("three", 1));
  EXPECT_THAT(scheduler.decide(kMoment).starts, IsEmpty());
}

TEST(SchedulerLimits, AreGivenByNoClaimBeforeKubernetesDoesIt) {
  Scheduler scheduler({.version = {1, 35}});
  scheduler.put_device_class({.name = "gpu", .extended_resource = kGpuResource});
  scheduler.put_node(gpu_node("a", 0), gpus_of("a", 4));
  scheduler.put_slice(slice_of("a", 4));
  auto own = changed(asking_pod("one", {}), [](auto& made) {
    made.requests.others = {{"deviceclass.resource.kubernetes.io/gpu", 1}};
  });
  scheduler.put_pod({own});
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "one"),
              ElementsAre(::testing::HasSubstr("Insufficient deviceclass.resource.kubernetes.io/gpu")));
}

/// Claims of particular devices get others than were planned, and so those that were planned for others.
TEST(SchedulerLimitsAndClaims, NeverHaveTheSameGpu) {
  for (const char* first : {"one", "two"}) {
    Scheduler scheduler;
    scheduler.put_device_class({.name = "gpu"});
    scheduler.put_node(gpu_node("a", 4), gpus_of("a", 4));
    scheduler.put_slice(slice_of("a", 4));
    scheduler.put_claim(claim_for("one", 1, "device.attributes['gpu.example'].model == 'odd'"));
    auto one = claiming("one");
    PodObject two{asking_pod("two", {.gpus = 3})};
    (first == std::string("one") ? one : two).pod.created = TimePoint(std::chrono::seconds(1));
    scheduler.put_pod(one);
    scheduler.put_pod(two);
    std::multiset<std::string> given;
    for (int i = 0; i < 3; ++i)
      for (const auto& start : scheduler.decide(kMoment).starts)
        for (const auto& binding : start.bindings) {
          given.insert(binding.gpus.begin(), binding.gpus.end());
          for (const auto& claim : binding.claims)
            for (const auto& device : claim.allocation->devices)
              given.insert("a-" + device.id.device.substr(4));
        }
    for (const auto& uuid : given) EXPECT_EQ(given.count(uuid), 1U) << uuid << " with " << first << " first";
    EXPECT_THAT(given, SizeIs(::testing::Ge(1U)));
  }
}

}  // namespace
}  // namespace drover::kube::scheduler

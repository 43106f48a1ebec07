#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "kube/scheduler/scheduler.h"
#include "kube/scheduler/testing/objects.h"

namespace drover::kube::scheduler {
namespace {

using testing::asking_pod;
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

/// Whose GPUs several claims may have parts of, as our driver publishes them; of 1000 bytes each.
class SchedulerShares : public ::testing::Test {
 protected:
  void SetUp() override {
    scheduler.put_device_class({.name = "gpu"});
    put_node("a");
  }

  void put_node(const std::string& name) {
    auto slice = slice_of(name, 2);
    for (auto& device : slice.devices) {
      auto kind = *device.kind;
      kind.shared = true;
      const Amount whole{1000 * kOneOf, "1000"}, one{kOneOf, "1"};
      DeviceCapacity capacity{.name = capacity_name, .value = whole, .unasked = whole};
      capacity.range = AmountRange{.min = one, .max = whole, .step = one};
      kind.capacities = {std::make_shared<const DeviceCapacity>(capacity)};
      device.kind = std::make_shared<const DeviceKind>(kind);
    }
    auto gpus = gpus_of(name, 2);
    for (auto& device : gpus.devices) device.memory_bytes = 1000;
    scheduler.put_node(gpu_node(name, 0), gpus);
    scheduler.put_slice(std::move(slice));
  }

  ResourceClaim share(const std::string& name, int part, int count = 1) const {
    auto claim = claim_for(name, count);
    auto spec = *claim.spec;
    if (part < 1000)
      spec.requests[0].wishes[0].capacity = {{capacity_name, {part * kOneOf, std::to_string(part)}}};
    claim.spec = std::make_shared<const ClaimSpec>(spec);
    return claim;
  }
  /// "one: a/gpu-1" when it starts.
  std::string ask(const std::string& name, int part) {
    scheduler.put_claim(share(name, part));
    scheduler.put_pod(claiming(name));
    return next();
  }
  std::string next() { return fmt::format("{}", fmt::join(devices_in(scheduler.decide(kMoment)), ", ")); }

  static constexpr Nanos kOneOf = 1'000'000'000;
  std::string capacity_name = "share";
  Scheduler scheduler;
};

TEST_F(SchedulerShares, FillTheGpuThatIsSharedAlready) {
  EXPECT_EQ(ask("whole", 1000), "whole: a/gpu-0");
  EXPECT_EQ(ask("half", 500), "half: a/gpu-1");
  EXPECT_EQ(ask("quarter", 250), "quarter: a/gpu-1");
  EXPECT_EQ(ask("more", 251), "");
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "more"),
              ElementsAre("0.251 of a GPU is wanted and at most 0.25 of one is left"));
  EXPECT_EQ(ask("rest", 250), "rest: a/gpu-1");
}

TEST_F(SchedulerShares, ByMemoryCountAsMuch) {
  capacity_name = "memory";
  put_node("a");
  EXPECT_EQ(ask("half", 500), "half: a/gpu-0");
  EXPECT_EQ(ask("other", 400), "other: a/gpu-0");
  EXPECT_EQ(ask("large", 600), "large: a/gpu-1");
  EXPECT_EQ(ask("late", 401), "");
  EXPECT_EQ(ask("small", 100), "small: a/gpu-0");
}

TEST_F(SchedulerShares, KeepWholeGpusFreeForLimits) {
  scheduler.put_node(gpu_node("a", 2), gpus_of("a", 2));
  EXPECT_EQ(ask("half", 500), "half: a/gpu-0");
  EXPECT_EQ(ask("other", 500), "other: a/gpu-0");
  scheduler.put_pod({asking_pod("limits", {.gpus = 1})});
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("limits on a: a-1"));
}

TEST_F(SchedulerShares, AreKnownAgainByTheirAllocations) {
  scheduler.put_claim(share("one", 500));
  scheduler.put_pod(claiming("one"));
  auto claim = share("one", 500);
  const auto round = scheduler.decide(kMoment);
  claim.allocation =
      std::make_shared<const ClaimAllocation>(*round.starts.at(0).bindings[0].claims[0].allocation);
  EXPECT_THAT(round.starts[0].bindings[0].claimed, ElementsAre("a-0"));
  scheduler.put_claim(claim);
  auto bound = claiming("one");
  bound.pod.node_name = "a";
  scheduler.put_pod(bound);
  EXPECT_EQ(ask("two", 500), "two: a/gpu-0");
  EXPECT_EQ(ask("three", 500), "three: a/gpu-1");
  scheduler.remove_pod("uid-one");
  EXPECT_EQ(ask("four", 1000), "") << "its claim is still allocated";
  scheduler.remove_claim("claim-uid-one");
  EXPECT_EQ(ask("five", 500), "five: a/gpu-0");
}

TEST_F(SchedulerShares, AreHadThoughTheNodeGivesTheGpuWholeNoMore) {
  EXPECT_EQ(ask("half", 500), "half: a/gpu-0");
  auto gpus = gpus_of("a", 2);
  for (auto& device : gpus.devices) device.memory_bytes = 1000;
  gpus.devices[0].unhealthy = "in use by a claim";
  scheduler.put_node(gpu_node("a", 1), gpus);
  EXPECT_EQ(ask("other", 500), "other: a/gpu-0");
  scheduler.put_pod({asking_pod("limits", {.gpus = 2})});
  EXPECT_THAT(scheduler.decide(kMoment).starts, IsEmpty());
}

/// A claim that several pods name.
class SchedulerCommonClaims : public ::testing::Test {
 protected:
  SchedulerCommonClaims() {
    scheduler.put_device_class({.name = "gpu"});
    for (const auto* node : {"a", "b"}) {
      scheduler.put_node(gpu_node(node, 0), gpus_of(node, 4));
      scheduler.put_slice(slice_of(node, 4));
    }
    auto claim = claim_for("common", 2);
    claim.owner_uid = "";
    scheduler.put_claim(claim);
  }

  static PodObject member(const std::string& name) {
    auto pod = claiming(name);
    pod.pod.claims = {{"gpus", "claim-common", false, true}};
    return pod;
  }
  std::vector<std::string> nodes() {
    std::vector<std::string> nodes;
    for (const auto& start : scheduler.decide(kMoment).starts)
      for (const auto& binding : start.bindings) nodes.push_back(binding.node);
    return nodes;
  }

  Scheduler scheduler;
};

TEST_F(SchedulerCommonClaims, AreWhereTheFirstOfThemIs) {
  scheduler.put_pod(member("one"));
  scheduler.put_pod(member("two"));
  EXPECT_THAT(nodes(), ElementsAre("a", "a"));
  scheduler.put_pod({asking_pod("full", {.gpus = 0})});
  EXPECT_THAT(nodes(), ElementsAre(::testing::_));
  scheduler.put_pod(member("three"));
  EXPECT_THAT(nodes(), ElementsAre("a"));
  scheduler.put_node(gpu_node("a", 0), gpus_of("a", 4));
  auto cordoned = gpu_node("a", 0);
  cordoned.unschedulable = true;
  scheduler.put_node(cordoned, gpus_of("a", 4));
  scheduler.put_pod(member("four"));
  EXPECT_THAT(nodes(), IsEmpty()) << "their devices are elsewhere";
}

TEST_F(SchedulerCommonClaims, TakeTheirGpusOnce) {
  for (const auto* name : {"one", "two", "three"}) scheduler.put_pod(member(name));
  EXPECT_THAT(nodes(), SizeIs(3));
  scheduler.put_claim(claim_for("other", 2));
  scheduler.put_pod(claiming("other"));
  EXPECT_THAT(nodes(), ElementsAre("a")) << "two of four are left";
  for (const auto* name : {"one", "two"}) scheduler.remove_pod(fmt::format("uid-{}", name));
  scheduler.put_claim(claim_for("late", 3));
  scheduler.put_pod(claiming("late"));
  EXPECT_THAT(nodes(), ElementsAre("b"));
  scheduler.put_claim(claim_for("last", 2));
  scheduler.put_pod(claiming("last"));
  EXPECT_THAT(nodes(), IsEmpty()) << "the third still has them";
}

}  // namespace
}  // namespace drover::kube::scheduler

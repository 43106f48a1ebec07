// What earlier tries have left.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "kube/scheduler/scheduler.h"
#include "kube/scheduler/testing/objects.h"

namespace drover::kube::scheduler {
namespace {

using namespace std::chrono_literals;
using testing::claim_for;
using testing::claiming;
using ::testing::ElementsAre;
using testing::gang_pod;
using testing::gpu_node;
using testing::gpus_of;
using ::testing::IsEmpty;
using testing::kMoment;
using ::testing::SizeIs;
using testing::slice_of;
using testing::started;
using ::testing::UnorderedElementsAre;

/// What was written for the pod "one" on the node "a", and then nobody went on.
class HalfDoneClaim : public ::testing::Test {
 protected:
  HalfDoneClaim() { put_cluster(scheduler); }

  static void put_cluster(Scheduler& scheduler) {
    scheduler.put_device_class({.name = "gpu"});
    for (const auto* name : {"a", "b"}) {
      scheduler.put_node(gpu_node(name, 0), gpus_of(name, 2));
      scheduler.put_slice(slice_of(name, 2));
    }
  }

  static ResourceClaim written() {
    Scheduler before;
    put_cluster(before);
    before.put_claim(claim_for("one", 2));
    before.put_pod(claiming("one"));
    auto claim = claim_for("one", 2);
    const auto round = before.decide(kMoment);
    const auto& decision = round.starts.at(0).bindings.at(0).claims.at(0);
    claim.allocation = std::make_shared<const ClaimAllocation>(*decision.allocation);
    claim.reserved_for = {{"pods", "one", "uid-one"}};
    return claim;
  }

  void cordon_a() {
    auto node = gpu_node("a", 0);
    node.unschedulable = true;
    scheduler.put_node(node, gpus_of("a", 2));
  }

  Scheduler scheduler;
};

TEST_F(HalfDoneClaim, IsFinishedWhereItCanBe) {
  scheduler.put_claim(written());
  scheduler.put_pod(claiming("one"));
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(started(round), ElementsAre("one on a:"));
  EXPECT_THAT(round.left_claims, IsEmpty());
}

TEST_F(HalfDoneClaim, IsGivenBackWhereItsNodeTakesThePodNoMore) {
  cordon_a();
  scheduler.put_claim(written());
  scheduler.put_pod(claiming("one"));
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, IsEmpty());
  ASSERT_THAT(round.left_claims, SizeIs(1));
  EXPECT_EQ(round.left_claims[0].claim, "claim-one");
  EXPECT_FALSE(round.left_claims[0].made);
  // Nothing is decided for it while it is being written.
  scheduler.put_claim(claim_for("one", 2));
  EXPECT_THAT(scheduler.decide(kMoment + 1min).starts, IsEmpty());
  scheduler.undone(round.left_claims[0], kMoment + 5s);
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("one on b:"));
}

TEST_F(HalfDoneClaim, IsTriedAgainAWhileAfterItCouldNotBeGivenBack) {
  cordon_a();
  scheduler.put_claim(written());
  scheduler.put_pod(claiming("one"));
  const auto left = scheduler.decide(kMoment).left_claims;
  ASSERT_THAT(left, SizeIs(1));
  scheduler.undone(left[0], kMoment + 5s);
  const auto soon = scheduler.decide(kMoment + 1s);
  EXPECT_THAT(soon.left_claims, IsEmpty());
  EXPECT_TRUE(soon.retry_at);
  EXPECT_THAT(scheduler.decide(kMoment + 1min).left_claims, SizeIs(1));
}

TEST_F(HalfDoneClaim, OfOthersIsTheirs) {
  cordon_a();
  auto shared = written();
  shared.reserved_for = {{"pods", "other", "uid-other"}};
  scheduler.put_claim(shared);
  scheduler.put_pod(claiming("one"));
  EXPECT_THAT(scheduler.decide(kMoment).left_claims, IsEmpty());
}

/// It could be neither written nor taken back, and nothing of it stands there.
TEST_F(HalfDoneClaim, ThatWasNeverWrittenIsForgotten) {
  scheduler.put_claim(claim_for("one", 2));
  scheduler.put_pod(claiming("one"));
  ASSERT_THAT(started(scheduler.decide(kMoment)), ElementsAre("one on a:"));
  scheduler.failed("uid-one", kMoment, true);
  cordon_a();
  const auto round = scheduler.decide(kMoment);
  ASSERT_THAT(round.left_claims, SizeIs(1));
  scheduler.undone(round.left_claims[0], kMoment + 5s);
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("one on b:"));
}

/// It could be neither written nor taken back; the second time the API server says that nothing of it stands.
TEST_F(HalfDoneClaim, ThatWasFoundNotToStandIsForgotten) {
  scheduler.put_claim(claim_for("one", 2));
  scheduler.put_pod(claiming("one"));
  for (const bool stands : {true, false}) {
    ASSERT_THAT(started(scheduler.decide(kMoment)), ElementsAre("one on a:"));
    scheduler.failed("uid-one", kMoment, stands);
  }
  cordon_a();
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("one on b:"));
}

class HalfGang : public ::testing::Test {
 protected:
  HalfGang() {
    for (const auto* name : {"a", "b"}) scheduler.put_node(gpu_node(name, 2), gpus_of(name, 2));
    auto bound = gang_pod("train", 2, 0, {.gpus = 2});
    bound.pod.node_name = "a";
    bound.pod.bound = kMoment;
    scheduler.put_pod(bound);
  }

  void take_b() {
    PodObject other{testing::asking_pod("other", {.gpus = 2})};
    other.pod.node_name = "b";
    scheduler.put_pod(other);
  }

  std::vector<std::string> evicted(TimePoint now) {
    const auto round = scheduler.decide(now);
    std::vector<std::string> names;
    for (const auto& eviction : round.evictions) {
      EXPECT_TRUE(eviction.half_gang);
      names.push_back(eviction.pod.name);
    }
    retry_at = round.retry_at;
    return names;
  }

  std::optional<TimePoint> retry_at;
  Scheduler scheduler;
};

TEST_F(HalfGang, WithoutAPlaceForTheRestIsEnded) {
  take_b();
  scheduler.put_pod(gang_pod("train", 2, 1, {.gpus = 2}));
  EXPECT_THAT(evicted(kMoment + 1s), IsEmpty());
  EXPECT_EQ(retry_at, kMoment + 20s);
  EXPECT_THAT(evicted(kMoment + 20s), ElementsAre("train-0"));
  EXPECT_THAT(evicted(kMoment + 21s), IsEmpty()) << "once";
  // When it could not be ended it is tried again, but not at once.
  scheduler.failed("uid-train-0", kMoment + 30s);
  EXPECT_THAT(evicted(kMoment + 22s), IsEmpty());
  EXPECT_EQ(retry_at, kMoment + 30s);
  EXPECT_THAT(evicted(kMoment + 30s), ElementsAre("train-0"));
}

TEST_F(HalfGang, ThatFindsAPlaceGoesOn) {
  scheduler.put_pod(gang_pod("train", 2, 1, {.gpus = 2}));
  const auto round = scheduler.decide(kMoment + 1h);
  EXPECT_THAT(started(round), ElementsAre("train-1 on b: b-0 b-1"));
  EXPECT_THAT(round.evictions, IsEmpty());
}

/// It was whole, or nobody could have come later.
TEST_F(HalfGang, ThatHasLostAMemberGoesOn) {
  take_b();
  auto late = gang_pod("train", 2, 1, {.gpus = 2});
  late.pod.created = kMoment + 1min;
  scheduler.put_pod(late);
  EXPECT_THAT(evicted(kMoment + 1h), IsEmpty());
}

TEST(FailedEviction, IsNotTriedAgainAtOnce) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 2), gpus_of("a", 2));
  PodObject low{testing::asking_pod("low", {.gpus = 2})};
  low.pod.node_name = "a";
  scheduler.put_pod(low);
  scheduler.put_pod({testing::asking_pod("high", {.gpus = 1, .priority = 10})});
  EXPECT_THAT(scheduler.decide(kMoment).evictions, SizeIs(1));
  scheduler.failed("uid-low", kMoment + 10s);
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.evictions, IsEmpty());
  EXPECT_EQ(round.retry_at, kMoment + 10s);
  EXPECT_THAT(scheduler.decide(kMoment + 10s).evictions, SizeIs(1));
}

}  // namespace
}  // namespace drover::kube::scheduler

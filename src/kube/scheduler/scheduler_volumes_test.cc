// Pods whose volumes wait for them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/scheduler/scheduler.h"
#include "kube/scheduler/testing/objects.h"

namespace drover::kube::scheduler {
namespace {

using testing::asking_pod;
using testing::changed;
using ::testing::ElementsAre;
using testing::gpu_node;
using testing::gpus_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kMoment;
using testing::reasons_of;
using ::testing::SizeIs;
using testing::started;

class SchedulerVolumes : public ::testing::Test {
 protected:
  SchedulerVolumes() {
    for (const auto* name : {"a", "b"}) scheduler.put_node(gpu_node(name), gpus_of(name, 4));
    scheduler.change_cluster([](Cluster& cluster) {
      cluster.put_storage_class({.name = "wait", .provisioner = "disks", .waits = true});
      cluster.put_storage_class(
          {.name = "static", .provisioner = "kubernetes.io/no-provisioner", .waits = true});
    });
  }

  static VolumeClaim claim_of(const std::string& pod, const std::string& storage_class = "wait") {
    VolumeClaim claim{.name_space = "team", .name = "data-" + pod};
    claim.uid = "claim-" + pod;
    claim.storage_class = storage_class;
    return claim;
  }
  void put(const VolumeClaim& claim) {
    scheduler.change_cluster([&](Cluster& cluster) { cluster.put_volume_claim(claim); });
  }
  /// A volume that is to be had on that node alone.
  static Volume volume_on(const std::string& node) {
    Volume volume{.name = "volume-" + node, .kind = "local"};
    volume.node_terms = {{.labels = {{"kubernetes.io/hostname", LabelOperator::kIn, {node}}}}};
    volume.storage_class = "static";
    volume.available = true;
    return volume;
  }
  void put(const Volume& volume) {
    scheduler.change_cluster([&](Cluster& cluster) { cluster.put_volume(volume); });
  }
  void bind(VolumeClaim claim, const std::string& node) {
    put(volume_on(node));
    claim.volume_name = "volume-" + node;
    claim.bound = true;
    put(claim);
  }

  static PodObject using_volume(const std::string& name, int gpus = 4) {
    return {changed(asking_pod(name, {.gpus = gpus}),
                    [&](auto& made) { made.volume_claims = {"data-" + name}; })};
  }

  Scheduler scheduler;
};

TEST_F(SchedulerVolumes, AreMadeWhereThePodIsToRunAndThenItStarts) {
  put(claim_of("train"));
  scheduler.put_pod(using_volume("train"));
  auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, IsEmpty());
  ASSERT_THAT(round.volumes, SizeIs(1));
  EXPECT_EQ(round.volumes[0].node, "a");
  EXPECT_EQ(round.volumes[0].volumes.at(0).claim, "data-train");
  EXPECT_EQ(round.volumes[0].volumes.at(0).volume, "");
  // It keeps its room meanwhile.
  scheduler.put_pod({asking_pod("other", {.gpus = 4})});
  round = scheduler.decide(kMoment);
  EXPECT_THAT(started(round), ElementsAre("other on b: b-0 b-1 b-2 b-3"));
  EXPECT_THAT(round.volumes, IsEmpty());
  EXPECT_THAT(reasons_of(round, "train"),
              ElementsAre("has room on 'a', and waits until its volumes are bound there"));
  auto claim = claim_of("train");
  claim.selected_node = "a";
  put(claim);
  EXPECT_THAT(scheduler.decide(kMoment).starts, IsEmpty());
  bind(claim, "a");
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("train on a: a-0 a-1 a-2 a-3"));
  EXPECT_THAT(scheduler.decide(kMoment).starts, IsEmpty());
}

TEST_F(SchedulerVolumes, AreToldOfWhenTheyAreThere) {
  std::vector<std::string> told;
  const auto decide = [&] {
    const auto round = scheduler.decide(kMoment, [&](const Start& start) { told.push_back(start.job); });
    EXPECT_EQ(round.starts.size(), told.size());
  };
  put(claim_of("train"));
  scheduler.put_pod(using_volume("train"));
  decide();
  EXPECT_THAT(told, IsEmpty());
  bind(claim_of("train"), "a");
  decide();
  EXPECT_THAT(told, ElementsAre("uid-train"));
}

TEST_F(SchedulerVolumes, ThatCouldNotBeMadeAreTriedAnew) {
  put(claim_of("train"));
  scheduler.put_pod(using_volume("train"));
  scheduler.decide(kMoment);
  auto claim = claim_of("train");
  claim.selected_node = "a";
  put(claim);
  EXPECT_TRUE(scheduler.has_changed());  // though nobody else waits
  EXPECT_THAT(scheduler.decide(kMoment).volume_undos, IsEmpty());
  put(claim_of("train"));  // so a provisioner says that it has failed
  auto round = scheduler.decide(kMoment);
  ASSERT_THAT(round.volume_undos, SizeIs(1));
  EXPECT_EQ(round.volume_undos[0].what.node, "a");
  EXPECT_EQ(round.volume_undos[0].why,
            "no volume could be made for its PersistentVolumeClaim 'data-train' on 'a'");
  EXPECT_THAT(round.volumes, IsEmpty());
  EXPECT_EQ(round.retry_at, kMoment + std::chrono::seconds(10));
  EXPECT_THAT(scheduler.decide(kMoment + std::chrono::seconds(10)).volumes, SizeIs(1));
}

TEST_F(SchedulerVolumes, AreNotWaitedForForever) {
  put(claim_of("train"));
  scheduler.put_pod(using_volume("train"));
  EXPECT_EQ(scheduler.decide(kMoment).retry_at, kMoment + std::chrono::minutes(10));
  EXPECT_THAT(scheduler.decide(kMoment + std::chrono::minutes(9)).volume_undos, IsEmpty());
  const auto round = scheduler.decide(kMoment + std::chrono::minutes(10));
  ASSERT_THAT(round.volume_undos, SizeIs(1));
  EXPECT_THAT(round.volume_undos[0].why, HasSubstr("within 10m"));
  scheduler.put_pod({asking_pod("other", {.gpus = 4})});
  EXPECT_THAT(started(scheduler.decide(kMoment + std::chrono::minutes(10))),
              ElementsAre("other on a: a-0 a-1 a-2 a-3"));
}

TEST_F(SchedulerVolumes, OnAnotherNodeThanThoughtThePodFollowsThem) {
  put(claim_of("train"));
  scheduler.put_pod(using_volume("train"));
  scheduler.decide(kMoment);
  bind(claim_of("train"), "b");
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(round.starts, IsEmpty());
  EXPECT_THAT(round.volume_undos, SizeIs(1));
  EXPECT_THAT(started(scheduler.decide(kMoment + std::chrono::seconds(10))),
              ElementsAre("train on b: b-0 b-1 b-2 b-3"));
}

TEST_F(SchedulerVolumes, ThatThereAreAreGivenOnce) {
  put(volume_on("b"));
  for (const auto* name : {"one", "two"}) {
    put(claim_of(name, "static"));
    scheduler.put_pod(using_volume(name, 1));
  }
  const auto round = scheduler.decide(kMoment);
  ASSERT_THAT(round.volumes, SizeIs(1));
  EXPECT_EQ(round.volumes[0].node, "b");
  EXPECT_EQ(round.volumes[0].volumes.at(0).volume, "volume-b");
  EXPECT_THAT(round.starts, IsEmpty());
  const auto first = round.volumes[0].pod.name;
  // When it is gone, so is what was decided for it.
  scheduler.remove_pod("uid-" + first);
  const auto next = scheduler.decide(kMoment);
  ASSERT_THAT(next.volumes, SizeIs(1));
  EXPECT_NE(next.volumes[0].pod.name, first);
}

TEST_F(SchedulerVolumes, WhoBeginsAnewGoesOnWhereTheyAreBeingMade) {
  auto claim = claim_of("train");
  claim.selected_node = "b";
  put(claim);
  scheduler.put_pod(using_volume("train"));
  const auto round = scheduler.decide(kMoment);
  ASSERT_THAT(round.volumes, SizeIs(1));
  EXPECT_EQ(round.volumes[0].node, "b");
}

TEST_F(SchedulerVolumes, OfAGangAreWaitedForTogether) {
  const auto member = [](int rank) {
    auto object = using_volume(fmt::format("train-{}", rank));
    object.gang = GangMember{.gang = {GangKind::kDrover, "team", "train"}, .rank = {rank}, .size = 2};
    return object;
  };
  for (int rank = 0; rank < 2; ++rank) {
    put(claim_of(fmt::format("train-{}", rank)));
    scheduler.put_pod(member(rank));
  }
  const auto round = scheduler.decide(kMoment);
  ASSERT_THAT(round.volumes, SizeIs(2));
  bind(claim_of("train-0"), round.volumes[0].node);
  EXPECT_THAT(scheduler.decide(kMoment).starts, IsEmpty());
  // When one gets none, none starts, and both are planned anew.
  scheduler.failed("uid-train-1", kMoment + std::chrono::seconds(1));
  EXPECT_THAT(scheduler.decide(kMoment).volume_undos, SizeIs(1));
  const auto again = scheduler.decide(kMoment + std::chrono::seconds(10));
  ASSERT_THAT(again.volumes, SizeIs(1));
  bind(claim_of("train-1"), again.volumes[0].node);
  EXPECT_THAT(started(scheduler.decide(kMoment + std::chrono::seconds(11))), SizeIs(2));
}

}  // namespace
}  // namespace drover::kube::scheduler

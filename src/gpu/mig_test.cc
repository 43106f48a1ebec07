#include "gpu/mig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/fake_tree.h"
#include "base/files.h"
#include "gpu/discovery.h"
#include "gpu/mig_nodes.h"
#include "gpu/simulation.h"

namespace drover::gpu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr unsigned k1g = 19;
constexpr unsigned k3g = 9;

class MigTest : public testing::Test {
 protected:
  void SetUp() override {
    tree.file("mig.yaml", "0: {enabled: true}\n");
    inventory = discover(nvml, {.kernel = std::nullopt, .simulation = "dgx-a100"});
    gpu = inventory.devices.at(0).uuid;
  }
  void TearDown() override {
    ::unsetenv("DROVER_SIM_PROFILE");
    ::unsetenv("DROVER_SIM_FAULTS");
  }
  MigGpu discovered() const {
    auto found = discover_mig(*nvml, gpu);
    EXPECT_TRUE(found) << to_string(found.error());
    return found.value_or(MigGpu());
  }
  MigPart part(unsigned profile, unsigned start, unsigned size) const {
    return {gpu, profile, {start, size}};
  }

  FakeTree tree;
  Result<Nvml> nvml = [this] {
    ::setenv("DROVER_SIM_PROFILE", DROVER_SIM_PROFILES "/dgx-a100.yaml", 1);
    ::setenv("DROVER_SIM_FAULTS", (tree / "faults.yaml").c_str(), 1);
    return Nvml::load(DROVER_SIM_LIBRARY);
  }();
  Inventory inventory;
  std::string gpu;
};

TEST_F(MigTest, ProfilesHaveTheNamesThatKubernetesKnows) {
  EXPECT_EQ(inventory.devices[0].mig, MigMode::kEnabled);
  std::vector<std::string> names;
  for (const auto& profile : discovered().profiles) names.push_back(profile.name);
  EXPECT_THAT(names,
              ElementsAre("7g.40gb", "4g.20gb", "3g.20gb", "2g.10gb", "1g.10gb", "1g.5gb", "1g.5gb.me"));
  const auto found = discovered();
  const auto* small = found.profile(k1g);
  ASSERT_NE(small, nullptr);
  EXPECT_THAT(small->placements, SizeIs(7));
  EXPECT_EQ(small->attributes, (MigAttributes{14, 1, 0, 0, 0, 0, 4864ULL << 20}));
  EXPECT_EQ(found.profile(k3g)->placements, (std::vector<MigPlacement>{{0, 4}, {4, 4}}));
}

TEST_F(MigTest, AnInstanceIsMadeAndDestroyedAndTwiceIsFine) {
  const auto made = make_mig_instance(*nvml, part(k3g, 4, 4));
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_THAT(made->uuid, StartsWith("MIG-"));
  EXPECT_EQ(made->placement, (MigPlacement{4, 4}));
  EXPECT_EQ(make_mig_instance(*nvml, part(k3g, 4, 4)), made);
  EXPECT_THAT(discovered().instances, ElementsAre(*made));
  EXPECT_TRUE(destroy_mig_instance(*nvml, part(k3g, 4, 4)));
  EXPECT_TRUE(destroy_mig_instance(*nvml, part(k3g, 4, 4)));
  EXPECT_THAT(discovered().instances, IsEmpty());
}

TEST_F(MigTest, WhatWasHalfMadeIsCompleted) {
  tree.file("mig.yaml", "0: {enabled: true, instances: [{id: 5, profile: 1g.5gb, start: 2}]}\n");
  ASSERT_THAT(discovered().instances, SizeIs(1));
  EXPECT_EQ(discovered().instances[0].uuid, "") << "it has no compute instance";
  const auto made = make_mig_instance(*nvml, part(k1g, 2, 1));
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_EQ(made->gpu_instance, 5U);
  EXPECT_NE(made->uuid, "");
}

TEST_F(MigTest, AnInstanceInPartsIsNotOneDevice) {
  tree.file("mig.yaml",
            "0: {enabled: true, instances: [{id: 1, profile: 3g.20gb, start: 0, compute: ["
            "{id: 0, start: 0, slices: 1}, {id: 1, start: 1, slices: 2}]}]}\n");
  ASSERT_THAT(discovered().instances, SizeIs(1));
  EXPECT_EQ(discovered().instances[0].uuid, "");
}

TEST_F(MigTest, WhatHasNoRoomIsAConflict) {
  ASSERT_TRUE(make_mig_instance(*nvml, part(k3g, 0, 4)));
  EXPECT_EQ(make_mig_instance(*nvml, part(k1g, 3, 1)).error().kind, ErrorKind::kConflict);
  EXPECT_TRUE(make_mig_instance(*nvml, part(k1g, 4, 1)));
  EXPECT_EQ(make_mig_instance(*nvml, part(1234, 4, 1)).error().kind, ErrorKind::kInvalid);
  gpu = inventory.devices[1].uuid;
  EXPECT_EQ(discover_mig(*nvml, gpu).error().kind, ErrorKind::kUnsupported) << "it is not in MIG mode";
}

TEST_F(MigTest, WhatIsUsedStays) {
  ASSERT_TRUE(make_mig_instance(*nvml, part(k1g, 0, 1)));
  tree.file("faults.yaml", "0: {fail: {nvmlComputeInstanceDestroy: 19}}\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const auto refused = destroy_mig_instance(*nvml, part(k1g, 0, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kConflict);
  EXPECT_NE(discovered().instances.at(0).uuid, "");
}

TEST(MigNodes, TheDriverTellsTheirNumbers) {
  FakeTree tree;
  tree.file("minors", mig_minors_text({0, 3})).file("devices", "Character devices:\n235 nvidia-caps\n");
  const MigNodePlaces places{tree / "minors", tree / "devices", tree / "dev"};
  const auto nodes = mig_device_nodes(places, 3, {.gpu_instance = 2, .compute_instance = 1});
  if (!nodes && nodes.error().kind == ErrorKind::kPermissionDenied) GTEST_SKIP() << to_string(nodes.error());
  ASSERT_TRUE(nodes) << to_string(nodes.error());
  // 3 of config and monitor, 15 GPU instances of 1 + 8 of each GPU before.
  constexpr unsigned kOfInstance = 3 + 3 * 135 + 2 * 9;
  EXPECT_THAT(*nodes, ElementsAre(DeviceNode{"/dev/nvidia-caps/nvidia-cap426", 235, kOfInstance, 0444},
                                  DeviceNode{"/dev/nvidia-caps/nvidia-cap428", 235, kOfInstance + 2, 0444}));
  struct stat info{};
  ASSERT_EQ(::stat((tree / "dev/nvidia-caps/nvidia-cap426").c_str(), &info), 0);
  EXPECT_EQ(info.st_rdev, ::makedev(235, kOfInstance));
  EXPECT_EQ(mig_device_nodes(places, 1, {}).error().kind, ErrorKind::kNotFound);
}

TEST(MigNodes, OfASimulationAreThere) {
  FakeTree state;
  const SimulatorPlaces where{{DROVER_SIM_PROFILES}, {DROVER_SIM_LIBRARY}};
  const auto simulation = prepare_simulation("mixed", state.root(), where);
  if (!simulation && simulation.error().kind == ErrorKind::kPermissionDenied)
    GTEST_SKIP() << to_string(simulation.error());
  ASSERT_TRUE(simulation) << to_string(simulation.error());
  const MigNodePlaces places{simulation->mig_minors, "/proc/devices", simulation->device_folder};
  const auto nodes = mig_device_nodes(places, 2, {.gpu_instance = 1});
  ASSERT_TRUE(nodes) << to_string(nodes.error());
  EXPECT_NE(nodes->front().major, 195U);
  ASSERT_TRUE(prepare_simulation("mixed", state.root(), where));
  EXPECT_EQ(mig_device_nodes(places, 2, {.gpu_instance = 1}), nodes) << "once more changes nothing";
  EXPECT_EQ(mig_device_nodes(places, 0, {}).error().kind, ErrorKind::kNotFound) << "a V100 cannot be cut up";
  ::unsetenv("DROVER_SIM_PROFILE");
  ::unsetenv("DROVER_SIM_FAULTS");
}

}  // namespace
}  // namespace drover::gpu

#include "kube/plugin/mig_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/discovery.h"
#include "kube/plugin/resources.h"
#include "kube/testing/machines.h"

namespace drover::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::machine;
using ::testing::Pair;
using testing::uuid;

/// GPU 1 of two is in MIG mode, and has these instances.
class PluginMig : public ::testing::Test {
 protected:
  PluginMig() { enable(1); }
  void enable(int gpu) {
    auto& device = inventory.devices[static_cast<std::size_t>(gpu)];
    device.mig = gpu::MigMode::kEnabled;
    device.unhealthy = gpu::kInMigMode;
    auto& cut = mig[uuid(gpu)];
    cut.profiles = {{.name = "3g.20gb", .id = 9, .attributes = {.memory_bytes = 20ULL << 30}},
                    {.name = "1g.5gb.me", .id = 20, .attributes = {.memory_bytes = 5ULL << 30}}};
  }
  void add(int gpu, unsigned profile, unsigned start, const std::string& name) {
    mig[uuid(gpu)].instances.push_back({start + 1, profile, {start, profile == 9 ? 4U : 1U}, name, 0});
  }
  static std::vector<std::string> offered(const PluginDevices& devices) {
    std::vector<std::string> names;
    ResourceNames own;
    for (const auto& [id, part] : devices.parts) own[id] = part.resource;
    for (const auto& resource : offer(devices.inventory, {}, {}, {}, own))
      for (const auto& device : resource.devices)
        names.push_back(resource.name + "=" + device.id + device.trouble);
    return names;
  }

  gpu::Inventory inventory = machine(2);
  std::map<std::string, gpu::MigGpu> mig;
};

TEST_F(PluginMig, MixedNamesThemByTheirProfiles) {
  add(1, 9, 4, "MIG-large");
  add(1, 20, 0, "MIG-media");
  const auto devices = plugin_devices(inventory, mig, {}, MigStrategy::kMixed);
  EXPECT_THAT(offered(devices), ElementsAre("nvidia.com/gpu=" + uuid(0), "nvidia.com/mig-3g.20gb=MIG-large",
                                            "nvidia.com/mig-1g.5gb.me=MIG-media"));
  EXPECT_EQ(devices.inventory.devices[1].memory_bytes, 20ULL << 30);
  EXPECT_EQ(devices.inventory.devices[1].minor, 1);
  EXPECT_EQ(devices.inventory.links.at(0).at(2), inventory.links[0][1]);
  EXPECT_EQ(devices.parts.at("MIG-large").instance.gpu_instance, 5U);
}

TEST_F(PluginMig, InstancesOfClaimsAndPartsOfPartsAreNotOffered) {
  add(1, 9, 4, "MIG-claimed");
  add(1, 20, 0, "");
  const auto devices = plugin_devices(inventory, mig, {{uuid(1), 9, {4, 4}}}, MigStrategy::kMixed);
  EXPECT_THAT(offered(devices), ElementsAre("nvidia.com/gpu=" + uuid(0)));
}

TEST_F(PluginMig, SingleNamesThemLikeGpusWhereAllAreAlike) {
  add(1, 9, 0, "MIG-1");
  EXPECT_THAT(plugin_devices(inventory, mig, {}, MigStrategy::kSingle).trouble,
              HasSubstr("every GPU in MIG mode"));
  enable(0);
  EXPECT_THAT(plugin_devices(inventory, mig, {}, MigStrategy::kSingle).trouble, HasSubstr("on every GPU"));
  add(0, 20, 0, "MIG-0");
  const auto unlike = plugin_devices(inventory, mig, {}, MigStrategy::kSingle);
  EXPECT_THAT(unlike.trouble, HasSubstr("one profile"));
  EXPECT_THAT(offered(unlike), IsEmpty());
  mig[uuid(0)].instances.clear();
  add(0, 9, 4, "MIG-0");
  const auto alike = plugin_devices(inventory, mig, {}, MigStrategy::kSingle);
  EXPECT_THAT(offered(alike), ElementsAre("nvidia.com/gpu=MIG-0", "nvidia.com/gpu=MIG-1"));
}

TEST_F(PluginMig, NoneLeavesGpusAsTheyAre) {
  add(1, 9, 0, "MIG-1");
  EXPECT_EQ(plugin_devices(inventory, mig, {}, MigStrategy::kNone).inventory, inventory);
}

TEST_F(PluginMig, WhatAilsTheGpuAilsItsParts) {
  add(1, 9, 0, "MIG-1");
  inventory.devices[1].unhealthy = "it is lost";
  EXPECT_EQ(plugin_devices(inventory, mig, {}, MigStrategy::kMixed).inventory.devices[1].unhealthy,
            "it is lost");
}

}  // namespace
}  // namespace drover::kube

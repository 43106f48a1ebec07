#include "kube/plugin/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/plugin/gpu_sets.h"
#include "kube/testing/machines.h"

namespace drover::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using testing::uuid;

constexpr const char* kVisible = "NVIDIA_VISIBLE_DEVICES";

std::vector<GrantedGpu> two_gpus() {
  const auto inventory = testing::machine(4);
  return {{inventory.devices[1], {{"/dev/nvidia1", 195, 1}}},
          {inventory.devices[3], {{"/dev/nvidia3", 195, 3}}}};
}

NodeParts parts(CdiSupport cdi) {
  return {cdi,
          "/sim/dev",
          {{"/dev/nvidiactl", 195, 255}},
          {{"/usr/local/nvidia", "/state/driver/1"}, {"/usr/local/nvidia/live", "/state/live", true}}};
}

PluginConfig strategies(std::vector<ListStrategy> chosen) {
  PluginConfig config;
  config.strategies = std::move(chosen);
  return config;
}

TEST(Allocation, NamesCdiDevicesWhereTheRuntimeKnowsThem) {
  const auto made = grant(two_gpus(), {}, parts(CdiSupport::kYes), "7");
  EXPECT_THAT(made.cdi_devices,
              ElementsAre("k8s.device-plugin.nvidia.com/gpu=" + uuid(1),
                          "k8s.device-plugin.nvidia.com/gpu=" + uuid(3), set_device({uuid(1), uuid(3)})));
  EXPECT_THAT(made.environment, ElementsAre(Pair(kVisible, uuid(1) + "," + uuid(3))));
  EXPECT_THAT(made.devices, IsEmpty());
  EXPECT_THAT(made.mounts, IsEmpty());
  EXPECT_THAT(made.annotations, IsEmpty());
}

TEST(Allocation, NeverLeavesAContainerWithoutDevicesWhereNobodyKnowsCdi) {
  for (const auto cdi : {CdiSupport::kNo, CdiSupport::kUnknown}) {
    auto config = PluginConfig{};
    config.pass_device_specs = false;
    const auto made = grant(two_gpus(), config, parts(cdi), "7");
    EXPECT_THAT(made.environment, ElementsAre(Pair(kVisible, uuid(1) + "," + uuid(3))));
    EXPECT_THAT(made.devices, ElementsAre(GrantedPath{"/dev/nvidia1", "/sim/dev/nvidia1"},
                                          GrantedPath{"/dev/nvidia3", "/sim/dev/nvidia3"},
                                          GrantedPath{"/dev/nvidiactl", "/sim/dev/nvidiactl"}));
    EXPECT_THAT(made.mounts, ElementsAreArray(parts(cdi).driver_volume));
  }
}

TEST(Allocation, SpeaksToNvidiasRuntimeInItsWords) {
  const auto by_environment =
      grant(two_gpus(), strategies({ListStrategy::kEnvironment}), parts(CdiSupport::kNo), "7");
  EXPECT_THAT(by_environment.environment, ElementsAre(Pair(kVisible, uuid(1) + "," + uuid(3))));
  EXPECT_THAT(by_environment.cdi_devices, IsEmpty());
  EXPECT_THAT(by_environment.devices, IsEmpty());

  auto config = strategies({ListStrategy::kVolumeMounts});
  config.ids_are_indices = true;
  const auto by_mounts = grant(two_gpus(), config, parts(CdiSupport::kNo), "7");
  EXPECT_THAT(by_mounts.environment, ElementsAre(Pair(kVisible, "/var/run/nvidia-container-devices")));
  EXPECT_THAT(by_mounts.mounts,
              ElementsAre(GrantedMount{"/var/run/nvidia-container-devices/1", "/dev/null"},
                          GrantedMount{"/var/run/nvidia-container-devices/3", "/dev/null"}));
}

TEST(Allocation, AnnotatesContainersApart) {
  const auto config = strategies({ListStrategy::kCdiAnnotations});
  const auto made = grant(two_gpus(), config, parts(CdiSupport::kYes), "7");
  const auto other = grant(two_gpus(), config, parts(CdiSupport::kYes), "8");
  EXPECT_THAT(made.annotations,
              ElementsAre(Pair("cdi.k8s.io/drover_7", "k8s.device-plugin.nvidia.com/gpu=" + uuid(1) +
                                                          ",k8s.device-plugin.nvidia.com/gpu=" + uuid(3) +
                                                          "," + set_device({uuid(1), uuid(3)}))));
  EXPECT_NE(made.annotations.begin()->first, other.annotations.begin()->first);
}

TEST(Allocation, PassesDevicesBesideCdiWhenItIsToldTo) {
  PluginConfig config;
  config.pass_device_specs = true;
  const auto made = grant(two_gpus(), config, parts(CdiSupport::kYes), "7");
  EXPECT_EQ(made.devices.size(), 3U);
  EXPECT_EQ(made.cdi_devices.size(), 3U);
  EXPECT_THAT(made.mounts, IsEmpty());
}

TEST(Allocation, GivesNothingToWhoIsGivenNothing) {
  const auto made = grant({}, {}, parts(CdiSupport::kYes), "7");
  EXPECT_THAT(made.cdi_devices, IsEmpty());
  EXPECT_THAT(made.environment, ElementsAre(Pair(kVisible, "void")));
}

TEST(Allocation, CallsCdiDevicesByTheirUuidsWhateverTheEnvironmentSays) {
  auto config = strategies({ListStrategy::kEnvironment, ListStrategy::kVolumeMounts, ListStrategy::kCdiCri});
  config.ids_are_indices = true;
  const auto made = grant(two_gpus(), config, parts(CdiSupport::kYes), "7");
  EXPECT_THAT(made.environment, ElementsAre(Pair(kVisible, "1,3")));
  EXPECT_EQ(made.cdi_devices.front(), "k8s.device-plugin.nvidia.com/gpu=" + uuid(1));
}

}  // namespace
}  // namespace drover::kube

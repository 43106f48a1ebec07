#include "kube/plugin/resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/testing/machines.h"

namespace drover::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using testing::machine;
using testing::uuid;

std::vector<std::string> troubles_of(const OfferedResource& resource) {
  std::vector<std::string> troubles;
  for (const auto& device : resource.devices) troubles.push_back(device.trouble);
  return troubles;
}

TEST(OfferedResources, AreTheWholeGpusWithTheirNumaNodes) {
  const auto offers = offer(machine(2), {}, {}, {});
  ASSERT_EQ(offers.size(), 1U);
  EXPECT_EQ(offers[0].name, "nvidia.com/gpu");
  EXPECT_FALSE(offers[0].shared);
  EXPECT_THAT(offers[0].devices, ElementsAre(OfferedDevice{uuid(0), 0, ""}, OfferedDevice{uuid(1), 1, ""}));
}

TEST(OfferedResources, AreReplicasOfGpusThatAreShared) {
  PluginConfig config;
  config.shares = {{"nvidia.com/gpu", 2, "nvidia.com/gpu.shared", {"1"}}};
  const auto offers = offer(machine(2), config, {}, {});
  ASSERT_EQ(offers.size(), 2U);
  EXPECT_THAT(offers[0].devices, ElementsAre(Field(&OfferedDevice::id, uuid(0))));
  EXPECT_EQ(offers[1].name, "nvidia.com/gpu.shared");
  EXPECT_TRUE(offers[1].shared);
  EXPECT_THAT(offers[1].devices, ElementsAre(Field(&OfferedDevice::id, uuid(1) + "::0"),
                                             Field(&OfferedDevice::id, uuid(1) + "::1")));
  EXPECT_EQ(uuid_in(offers[1].devices[0].id), uuid(1));
}

TEST(OfferedResources, AreUnderSeveralNamesAndTakenUnderAll) {
  PluginConfig config;
  config.resources = {{"nvidia.com/gpu", "*"}, {"nvidia.com/model", "Model*"}, {"nvidia.com/none", "Other"}};
  const auto offers = offer(machine(3), config, {{uuid(1), {"nvidia.com/model"}}}, {});
  ASSERT_EQ(offers.size(), 2U);
  EXPECT_THAT(troubles_of(offers[0]), ElementsAre("", "in use as nvidia.com/model", ""));
  EXPECT_THAT(troubles_of(offers[1]), ElementsAre("", "", ""));
}

TEST(OfferedResources, HaveTheTroubleOfTheirGpuAndNoOther) {
  auto inventory = machine(3);
  inventory.devices[2].unhealthy = "GPU is lost";
  const auto offers = offer(inventory, {}, {}, {{uuid(0), "XID 79"}});
  EXPECT_THAT(troubles_of(offers[0]), ElementsAre("XID 79", "", "GPU is lost"));
}

TEST(OfferedResources, OfferAGpuOnceUnderAName) {
  PluginConfig config;
  config.resources = {{"nvidia.com/gpu", "Model*"}, {"nvidia.com/gpu", "*"}};
  EXPECT_EQ(offer(machine(2), config, {}, {})[0].devices.size(), 2U);
  EXPECT_THAT(offer({}, config, {}, {}), IsEmpty());
}

}  // namespace
}  // namespace drover::kube

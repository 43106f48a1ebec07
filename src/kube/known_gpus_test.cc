#include "kube/known_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/testing/machines.h"

namespace drover::kube {
namespace {

using testing::machine;
using testing::uuid;

gpu::Inventory without(gpu::Inventory inventory, std::size_t index) {
  const auto at = static_cast<std::ptrdiff_t>(index);
  inventory.devices.erase(inventory.devices.begin() + at);
  inventory.links.erase(inventory.links.begin() + at);
  for (auto& row : inventory.links) row.erase(row.begin() + at);
  for (std::size_t i = 0; i < inventory.devices.size(); ++i) inventory.devices[i].index = static_cast<int>(i);
  return inventory;
}

TEST(KnownGpus, StayWhenTheDriverNoLongerListsThem) {
  const auto all = machine(4);
  const auto kept = keep_known(all, without(all, 1));
  ASSERT_EQ(kept.devices.size(), 4U);
  EXPECT_EQ(kept.links, all.links);
  EXPECT_EQ(kept.devices[1].unhealthy, "the driver no longer lists it");
  EXPECT_EQ(kept.devices[2], all.devices[2]);
  EXPECT_EQ(keep_known(kept, without(all, 1)), kept);
  EXPECT_EQ(keep_known(kept, all), all);
}

TEST(KnownGpus, AreWhatIsListedWhenSomethingNewIsThere) {
  const auto all = machine(4);
  EXPECT_EQ(keep_known({}, all), all);
  auto other = without(all, 0);
  other.devices[0].uuid = "GPU-new";
  EXPECT_EQ(keep_known(all, other), other);
}

TEST(KnownGpus, KeepWhatIsNewsOfThem) {
  const auto all = machine(3);
  auto now = without(all, 0);
  now.devices[0].unhealthy = "XID 79";
  now.driver_version = "999";
  const auto kept = keep_known(all, now);
  EXPECT_EQ(kept.devices[1].unhealthy, "XID 79");
  EXPECT_EQ(kept.driver_version, "999");
  EXPECT_EQ(keep_known(all, {}).devices.size(), 3U);
}

}  // namespace
}  // namespace drover::kube

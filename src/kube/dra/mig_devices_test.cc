#include "kube/dra/mig_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "gpu/discovery.h"
#include "kube/dra/devices.h"
#include "kube/dra/slices.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::uint64_t kMib = 1ULL << 20;

/// An A100's, but for the profiles of one slice with more than usual.
View mig_view() {
  gpu::Device device;
  device.uuid = "GPU-a";
  device.minor = 4;
  device.mig = gpu::MigMode::kEnabled;
  device.unhealthy = gpu::kInMigMode;
  device.model = "NVIDIA A100-SXM4-40GB";
  device.compute_capability = gpu::ComputeCapability{8, 0};
  View view;
  view.inventory.devices = {device};
  view.inventory.links = {{{0, gpu::PcieLevel::kSameDevice}}};
  view.mig["GPU-a"].profiles = {{"7g.40gb", 0, 7, 1, {98, 7, 5, 0, 1, 1, 40192 * kMib}, {{0, 8}}},
                                {"3g.20gb", 9, 3, 2, {42, 3, 2, 0, 0, 0, 19968 * kMib}, {{0, 4}, {4, 4}}},
                                {"1g.5gb",
                                 19,
                                 1,
                                 7,
                                 {14, 1, 0, 0, 0, 0, 4864 * kMib},
                                 {{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}}},
                                {"1g.5gb.me", 20, 1, 1, {14, 1, 1, 0, 1, 1, 4864 * kMib}, {{0, 1}, {1, 1}}}};
  return view;
}

void add_instance(View& view, unsigned profile, gpu::MigPlacement placement, bool made) {
  view.mig["GPU-a"].instances.push_back({7, profile, placement, "MIG-x", 0});
  if (made) view.made.insert({"GPU-a", profile, placement});
}

std::set<std::string> names_of(const View& view) {
  std::set<std::string> names;
  for (const auto& device : devices_of(view, Sharing::kWhole, "gpu.nvidia.com")) names.insert(device["name"]);
  return names;
}

json device_named(const View& view, const std::string& name) {
  for (auto& device : devices_of(view, Sharing::kWhole, "gpu.nvidia.com"))
    if (device["name"] == name) return device;
  return nullptr;
}

TEST(MigDevices, AreWhatNvidiasDriverOffers) {
  const auto view = mig_view();
  EXPECT_EQ(names_of(view).size(), 12U) << "and not the whole GPU";
  EXPECT_EQ(device_named(view, "gpu-4-mig-3g20gb-9-4"), json::parse(R"({
    "name": "gpu-4-mig-3g20gb-9-4",
    "attributes": {
      "type": {"string": "mig"},
      "parentUUID": {"string": "GPU-a"},
      "profile": {"string": "3g.20gb"},
      "productName": {"string": "NVIDIA A100-SXM4-40GB"},
      "architecture": {"string": "Ampere"},
      "cudaComputeCapability": {"version": "8.0.0"}
    },
    "capacity": {
      "multiprocessors": {"value": "42"}, "copyEngines": {"value": "3"}, "decoders": {"value": "2"},
      "encoders": {"value": "0"}, "jpegEngines": {"value": "0"}, "ofaEngines": {"value": "0"},
      "memory": {"value": "19968Mi"}
    },
    "consumesCounters": [{"counterSet": "gpu-4-counter-set", "counters": {
      "multiprocessors": {"value": "42"}, "copy-engines": {"value": "3"}, "decoders": {"value": "2"},
      "memory": {"value": "19968Mi"}, "memory-slice-4": {"value": "1"}, "memory-slice-5": {"value": "1"},
      "memory-slice-6": {"value": "1"}, "memory-slice-7": {"value": "1"}
    }}]
  })"));
  EXPECT_THAT(names_of(view), Contains("gpu-4-mig-1g5gb-me-20-0"));
  EXPECT_EQ(device_named(view, "gpu-4-mig-1g5gb-me-20-0")["attributes"]["profile"]["string"], "1g.5gb+me");
}

TEST(MigDevices, TheirGpuHasTheCountersThatTheyConsume) {
  const auto view = mig_view();
  const auto sets = counter_sets_of(view);
  ASSERT_THAT(sets, SizeIs(1));
  EXPECT_EQ(sets[0]["name"], "gpu-4-counter-set");
  EXPECT_EQ(sets[0]["counters"]["multiprocessors"]["value"], "98");
  EXPECT_EQ(sets[0]["counters"]["jpeg-engines"]["value"], "1");
  for (const auto& device : devices_of(view, Sharing::kWhole, "gpu.nvidia.com"))
    for (const auto& [counter, amount] : device["consumesCounters"][0]["counters"].items())
      EXPECT_TRUE(sets[0]["counters"].contains(counter)) << device["name"] << counter;
}

TEST(MigDevices, AnInstanceOfSomebodyElseIsOfferedAndItsPlaceIsNot) {
  auto view = mig_view();
  add_instance(view, 9, {0, 4}, false);
  const auto fixed = device_named(view, "gpu-4-mig-3g20gb-9-0");
  EXPECT_EQ(fixed["attributes"]["uuid"]["string"], "MIG-x");
  EXPECT_FALSE(fixed.contains("consumesCounters"));
  EXPECT_EQ(fixed["capacity"]["memorySlice3"]["value"], "1");
  EXPECT_FALSE(fixed["capacity"].contains("memorySlice4"));
  EXPECT_EQ(names_of(view),
            (std::set<std::string>{"gpu-4-mig-3g20gb-9-0", "gpu-4-mig-3g20gb-9-4", "gpu-4-mig-1g5gb-19-4",
                                   "gpu-4-mig-1g5gb-19-5", "gpu-4-mig-1g5gb-19-6"}));
  const auto counters = counter_sets_of(view)[0]["counters"];
  EXPECT_EQ(counters["memory-slice-0"]["value"], "0");
  EXPECT_EQ(counters["memory-slice-4"]["value"], "1");
  EXPECT_EQ(counters["copy-engines"]["value"], "4");
}

TEST(MigDevices, OneThatIsNotWholeIsNotOfferedAndTakesItsPlace) {
  auto view = mig_view();
  add_instance(view, 9, {0, 4}, false);
  view.mig["GPU-a"].instances[0].uuid.clear();
  EXPECT_THAT(names_of(view), Not(Contains("gpu-4-mig-3g20gb-9-0")));
  EXPECT_THAT(names_of(view), Contains("gpu-4-mig-3g20gb-9-4"));
}

TEST(MigDevices, WhatTheDriverItselfMadeChangesNothing) {
  auto view = mig_view();
  const auto before = devices_of(view, Sharing::kWhole, "gpu.nvidia.com");
  const auto counters = counter_sets_of(view);
  add_instance(view, 9, {0, 4}, true);
  EXPECT_EQ(devices_of(view, Sharing::kWhole, "gpu.nvidia.com"), before);
  EXPECT_EQ(counter_sets_of(view), counters);
}

TEST(MigDevices, TroublesAreOfThePartOrOfAllParts) {
  auto view = mig_view();
  add_instance(view, 9, {0, 4}, true);
  view.troubles["MIG-x"] = {{.key = "gpu.nvidia.com/xid", .value = "94"}};
  const auto tainted = [&] {
    std::set<std::string> names;
    for (const auto& device : devices_of(view, Sharing::kWhole, "gpu.nvidia.com"))
      if (device.contains("taints")) names.insert(device["name"]);
    return names;
  };
  EXPECT_EQ(tainted(), std::set<std::string>{"gpu-4-mig-3g20gb-9-0"});
  view.troubles["GPU-a"] = {{.key = "gpu.nvidia.com/xid", .value = "79"}};
  EXPECT_THAT(tainted(), SizeIs(12));
  view.troubles.clear();
  EXPECT_THAT(tainted(), IsEmpty());
  view.inventory.devices[0].unhealthy = "it fell off the bus";
  EXPECT_THAT(tainted(), SizeIs(12));
}

TEST(MigDevices, CountersAreInSlicesOfTheirOwn) {
  const auto view = mig_view();
  const auto slices = slices_of({.driver = "gpu.nvidia.com", .node = "node1"},
                                {devices_of(view, Sharing::kWhole, "gpu.nvidia.com"), counter_sets_of(view)});
  ASSERT_THAT(slices, SizeIs(2));
  EXPECT_FALSE(slices[0]["spec"].contains("sharedCounters"));
  EXPECT_FALSE(slices[1]["spec"].contains("devices"));
  EXPECT_THAT(slices[1]["spec"]["sharedCounters"], SizeIs(1));
  EXPECT_EQ(slices[1]["spec"]["pool"]["resourceSliceCount"], 2);
}

}  // namespace
}  // namespace drover::kube::dra

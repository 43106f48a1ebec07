#include "kube_node/offer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/dra/devices.h"
#include "kube/testing/machines.h"

namespace drover {
namespace {

using kube::dra::Effect;
using kube::testing::uuid;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const gpu::Reason kLost = {gpu::ReasonKind::kLost, 15, {}, true, TimePoint(std::chrono::seconds(7))};
const gpu::Reason kWarning = {gpu::ReasonKind::kXid, 31, {}, false, TimePoint(std::chrono::seconds(5))};
const gpu::Reason kUnmonitored = {gpu::ReasonKind::kUnmonitored, 0, {}, false, {}};

std::string text_of(const kube::dra::Trouble& trouble) {
  return trouble.key + "=" + trouble.value + (trouble.effect == Effect::kNone ? ":None" : ":NoSchedule");
}

std::vector<std::string> texts_of(const kube::dra::View& view, const std::string& device) {
  std::vector<std::string> texts;
  if (const auto found = view.troubles.find(device); found != view.troubles.end())
    for (const auto& trouble : found->second) texts.push_back(text_of(trouble));
  return texts;
}

/// GPU 1 of two is in MIG mode, and has two instances.
class NodeOffer : public ::testing::Test {
 protected:
  NodeOffer() {
    view.inventory = kube::testing::machine(2);
    auto& cut = view.mig[uuid(1)];
    cut.profiles = {{.name = "3g.20gb", .id = 9}};
    cut.instances = {{1, 9, {0, 4}, "MIG-a", 0}, {2, 9, {4, 4}, "MIG-b", 0}};
    view.inventory.devices[1].mig = gpu::MigMode::kEnabled;
  }
  const gpu::Device& gpu(std::size_t index) const { return view.inventory.devices[index]; }
  std::map<std::string, std::string> unhealthy() const {
    auto devices = kube::plugin_devices(view.inventory, view.mig, {}, kube::MigStrategy::kMixed);
    mark_unhealthy(view, devices);
    std::map<std::string, std::string> found;
    for (const auto& device : devices.inventory.devices)
      if (!device.unhealthy.empty()) found[device.uuid] = device.unhealthy;
    return found;
  }

  kube::dra::View view;
};

TEST_F(NodeOffer, OnlyWhatTakesAGpuOutKeepsItBack) {
  add_health(gpu(0), {kWarning, kLost, kUnmonitored}, view);
  EXPECT_THAT(texts_of(view, uuid(0)),
              ElementsAre("gpu.nvidia.com/xid=31:None", "gpu.nvidia.com/gpu-lost=15:NoSchedule",
                          "gpu.nvidia.com/unmonitored=:None"));
  EXPECT_EQ(hindrance_of(view, uuid(0)), to_string(kLost));
  EXPECT_EQ(view.troubles[uuid(0)][1].since, kLost.since);
}

TEST_F(NodeOffer, AGpuThatHangsIsTaintedInTheSlices) {
  const gpu::Reason silent = {gpu::ReasonKind::kSilent, 0, {}, true, TimePoint(std::chrono::seconds(9))};
  add_health(gpu(0), {silent}, view);
  std::vector<nlohmann::json> taints;
  for (const auto& device : kube::dra::devices_of(view, kube::dra::Sharing::kWhole, "gpu.nvidia.com"))
    if (device.contains("taints")) taints.push_back(device);
  ASSERT_EQ(taints.size(), 1U) << "and nobody else";
  EXPECT_EQ(taints[0]["attributes"]["uuid"]["string"], uuid(0));
  EXPECT_EQ(taints[0]["taints"],
            nlohmann::json::parse(R"([{"key": "gpu.nvidia.com/silent", "effect": "NoSchedule",
                                                            "timeAdded": "1970-01-01T00:00:09Z"}])"));
}

TEST_F(NodeOffer, WhatConcernsAPartIsTheTroubleOfThatPart) {
  auto of_part = kLost;
  of_part.instance = {2, std::nullopt};
  add_health(gpu(1), {of_part}, view);
  EXPECT_THAT(texts_of(view, uuid(1)), IsEmpty());
  EXPECT_THAT(texts_of(view, "MIG-a"), IsEmpty());
  EXPECT_THAT(texts_of(view, "MIG-b"), ElementsAre("gpu.nvidia.com/gpu-lost=15:NoSchedule"));
  EXPECT_THAT(unhealthy(), ElementsAre(Pair("MIG-b", to_string(of_part))));
}

TEST_F(NodeOffer, AllPartsAreUnhealthyWithTheirGpuAndNoneForAWarning) {
  add_health(gpu(1), {kWarning, kUnmonitored}, view);
  EXPECT_THAT(unhealthy(), IsEmpty());
  add_health(gpu(1), {kLost}, view);
  EXPECT_THAT(unhealthy(), ElementsAre(Pair("MIG-a", to_string(kLost)), Pair("MIG-b", to_string(kLost))));
}

TEST_F(NodeOffer, WhatLimitsHaveIsKeptFromClaimsForAsLong) {
  ClaimHindrances hindrances("gpu.example.com");
  const auto at = [](int second) { return TimePoint(std::chrono::seconds(second)); };
  const auto since = [&](const kube::Holders& holders, const MissingFiles& missing, int now) {
    view.troubles.clear();
    hindrances.add(holders, missing, at(now), view);
    std::map<std::string, TimePoint> times;
    for (const auto& [device, troubles] : view.troubles)
      for (const auto& trouble : troubles) times[device + " " + text_of(trouble)] = trouble.since;
    return times;
  };
  const auto in_use = uuid(0) + " gpu.example.com/in-use=:NoSchedule";
  const auto missing = uuid(0) + " gpu.example.com/no-device-files=:NoSchedule";
  const kube::Holders held = {{uuid(0), {"nvidia.com/gpu"}}};
  EXPECT_THAT(since(held, {}, 1), ElementsAre(Pair(in_use, at(1))));
  EXPECT_EQ(hindrance_of(view, uuid(0)), "in use as nvidia.com/gpu");
  EXPECT_THAT(since(held, {{uuid(0), "There is no '/dev/nvidia0'"}}, 2),
              ElementsAre(Pair(in_use, at(1)), Pair(missing, at(2))));
  EXPECT_THAT(since({}, {{uuid(0), "There is no '/dev/nvidia0'"}}, 3), ElementsAre(Pair(missing, at(2))));
  EXPECT_EQ(hindrance_of(view, uuid(0)), "There is no '/dev/nvidia0'");
  EXPECT_THAT(since(held, {}, 4), ElementsAre(Pair(in_use, at(4)))) << "it was free in between";
}

}  // namespace
}  // namespace drover

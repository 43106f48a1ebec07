#include "kube/dra/device_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/dra/testing/fake_claims.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const StatusOwner kOwner{"gpu.nvidia.com", "node1"};
const TimePoint kThen{std::chrono::seconds(1'000'000)}, kLater{std::chrono::seconds(2'000'000)};
constexpr std::int64_t kMemory = 80LL << 30;

std::map<std::string, NodeGpu> two_gpus() {
  return {{"gpu-0", {.uuid = "GPU-0", .memory_bytes = kMemory}}, {"gpu-1", {.uuid = "GPU-1"}}};
}

PreparedDevice device_of(const std::string& name, std::optional<std::int64_t> memory,
                         const std::string& share_id = "") {
  PreparedDevice device{.allocated = {.request = "gpus", .device = name, .share_id = share_id},
                        .uuid = "GPU-" + name.substr(4)};
  device.allocated.memory = memory;
  return device;
}

PreparedClaim claim_of(std::vector<PreparedDevice> devices, bool guarded) {
  PreparedClaim claim{{"team-a", "a", "uid-a"}, std::move(devices)};
  if (guarded) claim.limits = {{"GPU-0", kMemory / 4, 250}};
  return claim;
}

json claim_with(json devices) {
  auto claim = claim_object({"team-a", "a", "uid-a"}, {result_of("gpu-0")});
  claim["status"]["devices"] = std::move(devices);
  return claim;
}

json guarded_entry() {
  const auto claim = claim_of({device_of("gpu-0", kMemory / 4, "s1")}, true);
  return device_statuses(claim, two_gpus(), kOwner).at(0);
}

TEST(DeviceStatus, SaysWhatHoldsAShareAndHowLargeItIs) {
  auto entry = guarded_entry();
  EXPECT_EQ(entry["conditions"][0]["type"], "Ready");
  EXPECT_EQ(entry["conditions"][1]["type"], "ShareEnforced");
  EXPECT_EQ(entry["conditions"][1]["status"], "True");
  entry.erase("conditions");
  EXPECT_EQ(entry,
            json::parse(R"({"driver": "gpu.nvidia.com", "pool": "node1", "device": "gpu-0", "shareID": "s1",
      "data": {"tier": "guarded", "heldBy": "guard", "memoryBytes": 21474836480, "computePercent": 25.0}})"));
  const auto counted = device_statuses(claim_of({device_of("gpu-0", 1)}, false), two_gpus(), kOwner).at(0);
  EXPECT_EQ(counted["data"]["heldBy"], "nothing");
  EXPECT_EQ(counted["conditions"][1]["status"], "False");
  EXPECT_FALSE(counted.contains("shareID"));
}

TEST(DeviceStatus, SaysNothingOfWholeGpusAndOfAnAdministrators) {
  auto whole = device_of("gpu-0", std::nullopt), all_memory = device_of("gpu-0", kMemory),
       beside = device_of("gpu-0", 1 << 30);
  beside.allocated.admin = true;
  EXPECT_THAT(device_statuses(claim_of({whole, all_memory, beside}, false), two_gpus(), kOwner), IsEmpty());
}

TEST(DeviceStatus, AMigDeviceIsHardAndASizeThatIsUnknownIsNotTold) {
  auto mig = device_of("gpu-0-mig-1g", std::nullopt);
  mig.mig = gpu::MigPart{"GPU-0", 19, {0, 1}};
  const auto entries =
      device_statuses(claim_of({mig, device_of("gpu-1", 1 << 30)}, false), two_gpus(), kOwner);
  ASSERT_THAT(entries, SizeIs(2));
  EXPECT_EQ(entries[0]["data"], json({{"tier", "hard"}, {"heldBy", "hardware"}}));
  EXPECT_EQ(entries[1]["data"], json({{"tier", "counted"}, {"heldBy", "nothing"}}));
}

TEST(DeviceStatus, IsWrittenOnceAndKeepsItsTimes) {
  const auto entries = json::array({guarded_entry()});
  const auto first = status_change(claim_with(nullptr), entries, kOwner, kThen);
  ASSERT_TRUE(first);
  auto there = first->at("devices");
  EXPECT_EQ(there[0]["conditions"][1]["lastTransitionTime"], format_time(kThen));
  there[0]["conditions"].push_back({{"type", "Somebodys"}, {"status", "True"}});
  EXPECT_FALSE(status_change(claim_with(there), entries, kOwner, kLater));
  there[0]["data"]["tier"] = "counted";
  there[0]["conditions"][1]["status"] = "False";
  const auto next = status_change(claim_with(there), entries, kOwner, kLater);
  ASSERT_TRUE(next);
  EXPECT_EQ((*next)["devices"][0]["conditions"][0]["lastTransitionTime"], format_time(kThen));
  EXPECT_EQ((*next)["devices"][0]["conditions"][1]["lastTransitionTime"], format_time(kLater));
}

TEST(DeviceStatus, LeavesOthersAloneAndTakesItsOwnAway) {
  auto others = guarded_entry(), of_node2 = guarded_entry(), ours = guarded_entry();
  others["driver"] = "nic.example.com";
  of_node2["pool"] = "node2";
  const auto none = json::array();
  EXPECT_FALSE(status_change(claim_with({others, of_node2}), none, kOwner, kThen));
  const auto gone = status_change(claim_with({others, ours}), none, kOwner, kThen);
  ASSERT_TRUE(gone);
  EXPECT_EQ(*gone, json::object());
  const auto added = status_change(claim_with({others}), json::array({ours}), kOwner, kThen);
  ASSERT_TRUE(added);
  EXPECT_THAT(added->at("devices"), SizeIs(1));
}

TEST(DeviceStatus, AManagersNameFitsHoweverLongTheNodes) {
  EXPECT_EQ(status_manager(kOwner), "drover/gpu.nvidia.com/node1");
  const StatusOwner one{"gpu.nvidia.com", std::string(253, 'a')},
      other{"gpu.nvidia.com", std::string(252, 'a')};
  EXPECT_LE(status_manager(one).size(), 128U);
  EXPECT_NE(status_manager(one), status_manager(other));
}

TEST(DeviceStatus, TheWeakestTierIsTheClaims) {
  auto guarded = guarded_entry(), counted = guarded_entry();
  counted["data"]["tier"] = "counted";
  const auto foreign = json::parse(R"({"driver": "nic.example.com", "data": {"tier": "gold"}})");
  EXPECT_EQ(tier_in_status(claim_with(nullptr)), "");
  EXPECT_EQ(tier_in_status(claim_with({foreign})), "");
  EXPECT_EQ(tier_in_status(claim_with({foreign, guarded})), "guarded");
  EXPECT_EQ(tier_in_status(claim_with({guarded, counted})), "counted");
  EXPECT_EQ(tier_in_status(json::parse(R"({"status": {"devices": "x"}})")), "");
}

}  // namespace
}  // namespace drover::kube::dra

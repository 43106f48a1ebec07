#include "kube/dra/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/dra/testing/fake_claims.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ClaimReference kClaim{"team-a", "training", "3b1c"};

Result<std::vector<AllocatedDevice>> read_claim_object(const json& claim) {
  return allocated_devices(claim, kClaim, "gpu.nvidia.com", "node1");
}

std::string refusal_of(const json& claim) {
  const auto devices = read_claim_object(claim);
  return devices ? "" : to_string(devices.error());
}

TEST(Claim, HasDevicesOfThisDriver) {
  auto other = result_of("eth0");
  other["driver"] = "nic.example.com";
  other["pool"] = "elsewhere";
  auto chosen = result_of("gpu-1");
  chosen["request"] = "gpus/large";
  chosen["adminAccess"] = true;
  EXPECT_THAT(read_claim_object(claim_object(kClaim, {other, result_of("gpu-0"), chosen})).value(),
              ElementsAre(AllocatedDevice{.request = "gpus", .device = "gpu-0"},
                          AllocatedDevice{.request = "gpus", .device = "gpu-1", .admin = true}));
  chosen["tolerations"] = json::array({{{"operator", "Exists"}}});
  EXPECT_TRUE(read_claim_object(claim_object(kClaim, {chosen})).value().front().tolerant);
}

TEST(Claim, TellsWhatIsTakenOfASharedDevice) {
  const auto devices = read_claim_object(claim_object(
      kClaim, {result_of("gpu-0", {{"memory", "40Gi"}}, "s1"),
               result_of("gpu-1", {{"gpu.nvidia.com/share", "500"}, {"gpu.nvidia.com/memory", "0"}}, "s2")}));
  ASSERT_TRUE(devices) << to_string(devices.error());
  EXPECT_EQ(devices->at(0), (AllocatedDevice{"gpus", "gpu-0", "s1", 40LL << 30, std::nullopt}));
  EXPECT_EQ(devices->at(1), (AllocatedDevice{"gpus", "gpu-1", "s2", std::nullopt, 500}));
}

TEST(Claim, IsRefusedWhenItIsNotTheOneOrNotReady) {
  EXPECT_THAT(refusal_of(claim_object({"team-a", "training", "another"}, {result_of("gpu-0")})),
              HasSubstr("is another one by now"));
  EXPECT_THAT(refusal_of(claim_object(kClaim, {})), HasSubstr("no devices allocated"));
  auto free = claim_object(kClaim, {result_of("gpu-0")});
  free["status"].erase("reservedFor");
  EXPECT_THAT(refusal_of(free), HasSubstr("reserved for no pod"));
  auto elsewhere = result_of("gpu-0");
  elsewhere["pool"] = "node2";
  EXPECT_THAT(refusal_of(claim_object(kClaim, {elsewhere})), HasSubstr("node2"));
  elsewhere["driver"] = "another";
  EXPECT_THAT(refusal_of(claim_object(kClaim, {elsewhere})), HasSubstr("no device of the driver"));
}

TEST(Claim, SurvivesGarbage) {
  for (const auto& garbage : {json(), json("x"), json::array(), json::object(), json{{"metadata", 5}}})
    EXPECT_FALSE(read_claim_object(garbage)) << garbage;
  for (const auto& result :
       {json(), json("x"), json{{"driver", "gpu.nvidia.com"}, {"device", 5}, {"pool", "node1"}},
        result_of("gpu-0", {{"memory", "-1"}}), result_of("gpu-0", {{"share", true}}),
        result_of(std::string(300, 'x'))})
    EXPECT_FALSE(read_claim_object(claim_object(kClaim, {result}))) << result;
  EXPECT_FALSE(read_claim_object(claim_object(kClaim, std::vector<json>(33, result_of("gpu-0")))));
}

}  // namespace
}  // namespace drover::kube::dra

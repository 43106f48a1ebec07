// What claims' configuration says of sharing, from its text to what is arranged for it.

#include "kube/dra/claim_sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/dra/testing/fake_claims.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;
using share::Interval;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

const ClaimReference kShared{"team-a", "shared", "5e1f"};

json config_of(const json& sharing, const char* kind = "GpuConfig") {
  return {{"apiVersion", "resource.nvidia.com/v1beta1"}, {"kind", kind}, {"sharing", sharing}};
}

json entry_of(const json& parameters, const json& requests = json::array(),
              const char* source = "FromClaim") {
  return {{"source", source},
          {"requests", requests},
          {"opaque", {{"driver", "gpu.nvidia.com"}, {"parameters", parameters}}}};
}

json in_turns(const char* interval) {
  return config_of({{"strategy", "TimeSlicing"}, {"timeSlicingConfig", {{"interval", interval}}}});
}

json by_mps(const json& config = nullptr) {
  json sharing{{"strategy", "MPS"}};
  if (!config.is_null()) sharing["mpsConfig"] = config;
  return config_of(sharing);
}

/// Of a claim with GPUs of the requests "a" and "b".
Result<share::Arrangement> arranged(const std::vector<json>& entries, std::vector<json> results = {}) {
  if (results.empty()) {
    results = {result_of("gpu-0"), result_of("gpu-1")};
    results[0]["request"] = "a";
    results[1]["request"] = "b/large";
  }
  auto object = claim_object(kShared, results);
  if (!entries.empty()) object["status"]["allocation"]["devices"]["config"] = entries;
  DROVER_TRY(auto devices, allocated_devices(object, kShared, "gpu.nvidia.com", "node1"));
  PreparedClaim claim{kShared, {}, false};
  for (auto& device : devices) {
    const auto uuid = "GPU-" + device.device.substr(4);
    std::optional<gpu::MigPart> mig;
    if (device.device.find("mig") != std::string::npos) mig = gpu::MigPart{"GPU-0", 19, {0, 1}};
    claim.devices.push_back({std::move(device), uuid, mig});
  }
  return arrangement_of(claim);
}

std::string refused(const std::vector<json>& entries, std::vector<json> results = {}) {
  const auto made = arranged(entries, std::move(results));
  return made ? "" : to_string(made.error());
}

TEST(ClaimSharing, IsNothingUnlessItIsAskedFor) {
  const json of_others{{"opaque", {{"driver", "nic.example.com"}, {"parameters", "whatever"}}}};
  for (const auto& entries :
       std::vector<std::vector<json>>{{},
                                      {entry_of(config_of(nullptr))},
                                      {entry_of(config_of({{"strategy", "TimeSlicing"}}))},
                                      {entry_of(config_of({{"strategy", "TimeSlicing"}}, "MigDeviceConfig"))},
                                      {of_others}}) {
    const auto made = arranged(entries);
    ASSERT_TRUE(made) << to_string(made.error());
    EXPECT_TRUE(made->empty());
  }
}

TEST(ClaimSharing, AnIntervalIsOfThoseRequestsThatItIsFor) {
  const auto all = arranged({entry_of(in_turns("Long"))}).value();
  EXPECT_THAT(all.intervals, ElementsAre(Pair("GPU-0", Interval::kLong), Pair("GPU-1", Interval::kLong)));
  const auto some =
      arranged({entry_of(in_turns("Short"), {"b"}), entry_of(in_turns("Default"), {"a"})}).value();
  EXPECT_THAT(some.intervals,
              ElementsAre(Pair("GPU-0", Interval::kDefault), Pair("GPU-1", Interval::kShort)));
  EXPECT_THAT(arranged({entry_of(in_turns("Medium"), {"b/large"})}).value().intervals,
              ElementsAre(Pair("GPU-1", Interval::kMedium)));
  EXPECT_THAT(arranged({entry_of(in_turns("Medium"), {"b/small"})}).value().intervals, IsEmpty());
}

TEST(ClaimSharing, TheClaimCountsForMoreThanItsClassAndTheLaterForMoreThanTheEarlier) {
  const auto of_class = entry_of(in_turns("Long"), {}, "FromClass");
  EXPECT_EQ(arranged({entry_of(in_turns("Short")), of_class}).value().intervals.at("GPU-0"),
            Interval::kShort);
  EXPECT_EQ(
      arranged({entry_of(in_turns("Short")), entry_of(in_turns("Medium"))}).value().intervals.at("GPU-0"),
      Interval::kMedium);
  EXPECT_EQ(arranged({of_class}).value().intervals.at("GPU-0"), Interval::kLong);
}

TEST(ClaimSharing, MpsHasLimitsOfEachGpu) {
  const auto plain = arranged({entry_of(by_mps())}).value();
  EXPECT_EQ(plain.mps, (share::MpsLimits{{"GPU-0", "GPU-1"}, std::nullopt, {}}));
  const auto limited =
      arranged(
          {entry_of(by_mps({{"defaultActiveThreadPercentage", 50},
                            {"defaultPinnedDeviceMemoryLimit", "10Gi"},
                            {"defaultPerDevicePinnedMemoryLimit", {{"0", "5Gi"}, {"GPU-1", "512Mi"}}}}))})
          .value();
  EXPECT_EQ(limited.mps, (share::MpsLimits{{"GPU-0", "GPU-1"}, 50, {{"GPU-0", 5120}, {"GPU-1", 512}}}));
}

TEST(ClaimSharing, SomeRequestsMayHaveMpsAndOthersTakeTurns) {
  const auto both = arranged({entry_of(in_turns("Long"), {"a"}), entry_of(by_mps(), {"b"})}).value();
  EXPECT_THAT(both.intervals, ElementsAre(Pair("GPU-0", Interval::kLong)));
  EXPECT_EQ(both.mps, (share::MpsLimits{{"GPU-1"}, std::nullopt, {}}));
}

TEST(ClaimSharing, EveryMistakeIsToldWithItsPath) {
  const auto said = refused({entry_of(by_mps({{"defaultActiveThreadPercentage", 101},
                                              {"defaultPinnedDeviceMemoryLimit", "1Ki"},
                                              {"defaultPerDevicePinnedMemoryLimit", {{"0", "much"}}},
                                              {"more", 1}})),
                             entry_of(in_turns("Longest"))});
  for (const auto* part :
       {"/sharing/mpsConfig/defaultActiveThreadPercentage", "/mpsConfig/defaultPinnedDeviceMemoryLimit",
        "/defaultPerDevicePinnedMemoryLimit: of '0' ", "/mpsConfig/more",
        "/sharing/timeSlicingConfig/interval"})
    EXPECT_THAT(said, HasSubstr(part));
  EXPECT_THAT(refused({entry_of(config_of({{"strategy", "Luck"}}))}), HasSubstr("/sharing/strategy"));
  EXPECT_THAT(refused({entry_of(config_of({{"mpsConfig", json::object()}}))}), HasSubstr("mpsConfig"));
  EXPECT_THAT(refused({entry_of(config_of({{"strategy", "MPS"}, {"timeSlicingConfig", json::object()}}))}),
              HasSubstr("timeSlicingConfig"));
  EXPECT_THAT(refused({entry_of(config_of({{"strategy", "MPS"}}, "MigDeviceConfig"))}),
              HasSubstr("a part of a GPU in MIG mode"));
  EXPECT_THAT(refused({entry_of(config_of(nullptr, "VfioDeviceConfig"))}), HasSubstr("'VfioDeviceConfig'"));
  EXPECT_NE(refused({entry_of("text")}), "");
  EXPECT_NE(refused({entry_of(nullptr)}), "");
}

TEST(ClaimSharing, WhatAGpuCannotDoIsRefused) {
  auto mine = result_of("gpu-0");
  mine["adminAccess"] = true;
  EXPECT_THAT(refused({entry_of(by_mps())}, {mine}), HasSubstr("administrator's"));
  EXPECT_THAT(refused({entry_of(by_mps())}, {result_of("gpu-0", {{"share", "500"}}, "s1")}),
              HasSubstr("given in parts"));
  EXPECT_EQ(refused({entry_of(in_turns("Short"))}, {result_of("gpu-0", {{"share", "500"}}, "s1")}), "");
  EXPECT_THAT(refused({entry_of(in_turns("Short"))}, {result_of("gpu-0-mig-1g5gb-19-0")}),
              HasSubstr("a part of a GPU in MIG mode"));
  EXPECT_EQ(refused({entry_of(in_turns("Default"))}, {mine, result_of("gpu-0-mig-1g5gb-19-0")}), "");
  EXPECT_THAT(
      refused({entry_of(by_mps(), {"a"}), entry_of(by_mps({{"defaultActiveThreadPercentage", 5}}), {"b"})}),
      HasSubstr("several configurations"));
  EXPECT_THAT(refused({entry_of(by_mps({{"defaultPerDevicePinnedMemoryLimit", {{"2", "1Gi"}}}}))}),
              HasSubstr("'2', which is none of its 2 GPUs"));
}

/// A machine that outlives us, and says no to a second one.
class FakeSharing : public ClaimSharing {
 public:
  Result<cdi::Edits> make(const std::string& uid, const share::Arrangement& arrangement) override {
    if (full && !there.contains(uid)) return fail(ErrorKind::kConflict, "somebody else has it");
    there[uid] = arrangement;
    return arrangement.mps ? mps_edits({"/state/" + uid + "/pipe", "/state/" + uid + "/shm"}) : cdi::Edits();
  }
  Status undo(const std::string& uid) override {
    there.erase(uid);
    return {};
  }
  Status keep_only(const std::set<std::string>& uids) override {
    std::erase_if(there, [&](const auto& one) { return !uids.contains(one.first); });
    return {};
  }
  std::map<std::string, share::Arrangement> there;
  bool full = false;
};

/// Claims whose configuration asks for MPS.
class SharingClaims : public FakeClaims {
 public:
  Result<json> claim(const std::string& namespace_name, const std::string& name) override {
    DROVER_TRY(auto object, FakeClaims::claim(namespace_name, name));
    object["status"]["allocation"]["devices"]["config"] = json::array({entry_of(by_mps())});
    return object;
  }
};

class PreparerSharingTest : public ::testing::Test {
 protected:
  PreparerSharingTest() {
    restart();
    claims->add(kShared, {result_of("gpu-0")});
  }
  void restart() {
    preparer = std::make_unique<Preparer>(
        PreparerOptions{.driver = "gpu.nvidia.com",
                        .pool = "node1",
                        .source = claims,
                        .files = files,
                        .edits = [](bool) { return GpuEdits{.of_gpu = {{"GPU-0", {}}}}; },
                        .sharing = sharing,
                        .warn = nullptr});
    preparer->set_gpus({{"gpu-0", {.uuid = "GPU-0"}}});
  }
  std::shared_ptr<SharingClaims> claims = std::make_shared<SharingClaims>();
  std::shared_ptr<FakeClaimFiles> files = std::make_shared<FakeClaimFiles>();
  std::shared_ptr<FakeSharing> sharing = std::make_shared<FakeSharing>();
  std::unique_ptr<Preparer> preparer;
};

TEST_F(PreparerSharingTest, WhatIsArrangedComesAndGoesWithItsClaim) {
  ASSERT_TRUE(preparer->prepare(kShared));
  EXPECT_EQ(sharing->there.size(), 1U);
  const auto& text = files->specifications[kShared.uid];
  for (const auto* part : {"CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps", "/state/5e1f/pipe", "/dev/shm"})
    EXPECT_THAT(text, HasSubstr(part));
  restart();
  sharing->there.clear();  // the machine was started again
  ASSERT_TRUE(preparer->recover());
  ASSERT_TRUE(preparer->restore());
  EXPECT_EQ(sharing->there.size(), 1U);
  ASSERT_TRUE(preparer->unprepare(kShared.uid));
  EXPECT_THAT(sharing->there, IsEmpty());
}

TEST_F(PreparerSharingTest, WhatCannotBeArrangedIsNotPrepared) {
  sharing->full = true;
  const auto prepared = preparer->prepare(kShared);
  ASSERT_FALSE(prepared);
  EXPECT_THAT(to_string(prepared.error()), HasSubstr("somebody else has it"));
  EXPECT_THAT(preparer->book(), IsEmpty());
  sharing = nullptr;
  restart();
  EXPECT_FALSE(preparer->prepare(kShared));
}

TEST_F(PreparerSharingTest, AClaimThatIsGoneLeavesNothingWheneverTheDriverDies) {
  for (int moment = 0; moment < 8; ++moment) {
    files->crash_in = moment;
    try {
      (void)preparer->prepare(kShared);
      (void)preparer->unprepare(kShared.uid);
    } catch (const Crash&) {
    }
    files->crash_in.reset();
    claims->remove(kShared);
    restart();
    ASSERT_TRUE(preparer->recover()) << moment;
    EXPECT_THAT(sharing->there, IsEmpty()) << moment;
    claims->add(kShared, {result_of("gpu-0")});
  }
}

}  // namespace
}  // namespace drover::kube::dra

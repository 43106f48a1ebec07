#include "kube/scheduling/claim_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/client/testing/fake_api.h"

namespace drover::kube {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using testing::FakeApi;

const scheduler::PodName kPod{"uid-train", "team", "train"};

class ClaimWriter : public ::testing::Test {
 protected:
  ClaimWriter() {
    const json requests{{{"name", "gpus"}, {"exactly", {{"deviceClassName", "gpu"}}}}};
    const auto made =
        api.create({kResourceClaims, "team"}, {{"metadata", {{"name", "gpus"}, {"namespace", "team"}}},
                                               {"spec", {{"devices", {{"requests", requests}}}}}});
    const auto read = scheduler::read_resource_claim(*made).value();
    decision = {read.uid, "team", "gpus", scheduler::ClaimAllocation{}, {}, read.as_read};
  }
  json claim() { return *api.get(kPath); }
  /// After the claim was made.
  std::vector<std::string> verbs() const {
    std::vector<std::string> verbs;
    for (const auto& request : api.requests()) verbs.push_back(request.verb);
    verbs.erase(verbs.begin());
    return verbs;
  }

  const ObjectPath kPath{kResourceClaims, "team", "gpus"};
  FakeApi api;
  scheduler::ClaimDecision decision;
};

TEST_F(ClaimWriter, WritesAsReadWithoutAskingAgain) {
  ASSERT_TRUE(write_claim(api, kPod, decision));
  EXPECT_THAT(verbs(), ElementsAre("update", "update"));
  EXPECT_EQ(claim()["metadata"]["finalizers"], json({"resource.kubernetes.io/delete-protection"}));
  EXPECT_EQ(text_at(claim(), "/status/reservedFor/0/uid"), "uid-train");
  EXPECT_TRUE(claim()["status"].contains("allocation"));
}

TEST_F(ClaimWriter, LosesNothingOfWhatOthersHaveWrittenSince) {
  ASSERT_TRUE(api.patch(kPath, PatchType::kMerge, {{"metadata", {{"labels", {{"team", "blue"}}}}}}));
  ASSERT_TRUE(write_claim(api, kPod, decision));
  EXPECT_EQ(text_at(claim(), "/metadata/labels/team"), "blue");
  EXPECT_TRUE(claim()["status"].contains("allocation"));
}

TEST_F(ClaimWriter, GivesNoOtherClaimOfItsName) {
  ASSERT_TRUE(api.remove(kPath));
  ASSERT_TRUE(api.create({kResourceClaims, "team"}, {{"metadata", {{"name", "gpus"}, {"namespace", "team"}}},
                                                     {"spec", json::object()}}));
  EXPECT_EQ(write_claim(api, kPod, decision).error().kind, ErrorKind::kConflict);
  EXPECT_FALSE(claim().contains("status"));
}

TEST_F(ClaimWriter, GivesNoDevicesTwice) {
  auto other = decision;
  ASSERT_TRUE(write_claim(api, {"uid-other", "team", "other"}, other));
  EXPECT_EQ(write_claim(api, kPod, decision).error().kind, ErrorKind::kConflict);
  EXPECT_EQ(claim()["status"]["reservedFor"].size(), 1U);
}

}  // namespace
}  // namespace drover::kube

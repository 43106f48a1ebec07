#include "kube/scheduling/volume_writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/client/testing/fake_api.h"

namespace drover::kube {
namespace {

using nlohmann::json;
using testing::FakeApi;

const ObjectPath kClaim{kVolumeClaims, "team", "data"};
const ObjectPath kVolume{kVolumes, "", "disk"};

class VolumeWriter : public ::testing::Test {
 protected:
  VolumeWriter() {
    make(kVolumeClaims, {{"metadata", {{"name", "data"}, {"namespace", "team"}}}, {"spec", json::object()}});
    make(kVolumes, {{"metadata", {{"name", "disk"}}}, {"spec", {{"local", {{"path", "/x"}}}}}});
    uid = text_at(*api.get(kClaim), "/metadata/uid");
  }

  void make(const Resource& resource, const json& object) {
    ObjectPath path{resource, text_at(object, "/metadata/namespace"), ""};
    ASSERT_TRUE(api.create(path, object));
  }
  scheduler::VolumeWrite write(const std::string& volume, const std::string& claim_uid = "") const {
    return {{"uid-train", "team", "train"},
            "node-1",
            {{"team", "data", claim_uid.empty() ? uid : claim_uid, volume}}};
  }
  std::string selected() {
    return text_at(*api.get(kClaim), "/metadata/annotations/volume.kubernetes.io~1selected-node");
  }
  void change(const ObjectPath& path, const json& patch) {
    ASSERT_TRUE(api.patch(path, PatchType::kMerge, patch));
  }
  std::size_t patches() const {
    std::size_t count = 0;
    for (const auto& request : api.requests()) count += request.verb == "patch" ? 1 : 0;
    return count;
  }

  FakeApi api;
  std::string uid;
};

TEST_F(VolumeWriter, HasAVolumeMadeOnceAndTakesThatBack) {
  ASSERT_TRUE(give_volumes(api, write("")));
  EXPECT_EQ(selected(), "node-1");
  ASSERT_TRUE(give_volumes(api, write("")));
  EXPECT_EQ(patches(), 1U);
  take_volumes_back(api, write(""));
  EXPECT_EQ(selected(), "");
}

TEST_F(VolumeWriter, LeavesWhatIsAnothersOrDone) {
  EXPECT_EQ(give_volumes(api, write("", "another")).error().kind, ErrorKind::kConflict);
  change(kClaim, {{"metadata", {{"annotations", {{"volume.kubernetes.io/selected-node", "node-2"}}}}}});
  EXPECT_EQ(give_volumes(api, write("")).error().kind, ErrorKind::kConflict);
  take_volumes_back(api, write(""));
  EXPECT_EQ(selected(), "node-2");
  change(kClaim, {{"metadata", {{"annotations", {{"volume.kubernetes.io/selected-node", "node-1"}}}}},
                  {"spec", {{"volumeName", "made"}}}});
  take_volumes_back(api, write(""));
  EXPECT_EQ(selected(), "node-1") << "it is made";
}

TEST_F(VolumeWriter, GivesAVolumeToAClaim) {
  ASSERT_TRUE(give_volumes(api, write("disk")));
  const auto volume = *api.get(kVolume);
  EXPECT_EQ(text_at(volume, "/spec/claimRef/namespace"), "team");
  EXPECT_EQ(text_at(volume, "/spec/claimRef/name"), "data");
  EXPECT_EQ(text_at(volume, "/spec/claimRef/uid"), uid);
  EXPECT_EQ(text_at(volume, "/metadata/annotations/pv.kubernetes.io~1bound-by-controller"), "yes");
  ASSERT_TRUE(give_volumes(api, write("disk")));
  EXPECT_EQ(patches(), 1U);
}

TEST_F(VolumeWriter, GivesNobodyWhatIsAnothers) {
  change(kVolume, {{"spec", {{"claimRef", {{"namespace", "team"}, {"name", "data"}, {"uid", "earlier"}}}}}});
  EXPECT_EQ(give_volumes(api, write("disk")).error().kind, ErrorKind::kConflict);
  change(kVolume, {{"spec", {{"claimRef", {{"namespace", "team"}, {"name", "data"}, {"uid", nullptr}}}}}});
  ASSERT_TRUE(give_volumes(api, write("disk")));
  const auto volume = *api.get(kVolume);
  EXPECT_EQ(text_at(volume, "/spec/claimRef/uid"), uid);
  EXPECT_EQ(text_at(volume, "/metadata/annotations/pv.kubernetes.io~1bound-by-controller"), "")
      << "it was meant for it";
}

TEST_F(VolumeWriter, OfSeveralAllOrNone) {
  auto what = write("");
  what.volumes.push_back({"team", "data", uid, "not-there"});
  EXPECT_EQ(give_volumes(api, what).error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(selected(), "");
}

}  // namespace
}  // namespace drover::kube

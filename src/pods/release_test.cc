#include "pods/release.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/client/testing/fake_api.h"
#include "pods/pod_view.h"

namespace drover::pods {
namespace {

using nlohmann::json;

const kube::Resource kTheLeases = {"coordination.k8s.io", "v1", "leases"};

class ReleaseTest : public ::testing::Test {
 protected:
  ReleaseTest() {
    api_.honour_finalizers();
    make({kTheLeases, "drover"}, {{"metadata", {{"name", "plane"}, {"namespace", "drover"}}},
                                  {"spec", {{"holderIdentity", "a"}, {"leaseDurationSeconds", 15}}}});
    EXPECT_TRUE(note_journal(api_, "drover", "plane", "mine"));
    pod("t-0", "mine");
    pod("u-0", "other");
  }
  void make(const kube::ObjectPath& where, const json& object) { EXPECT_TRUE(api_.create(where, object)); }
  void pod(const std::string& name, const std::string& journal) {
    make({kube::kPods, "drover-ann"}, {{"metadata",
                                        {{"name", name},
                                         {"namespace", "drover-ann"},
                                         {"finalizers", json::array({kFinalizer})},
                                         {"labels", {{kTaskLabel, "t"}, {kJournalLabel, journal}}}}}});
  }
  bool is_there(const std::string& name) { return api_.get({kube::kPods, "drover-ann", name}).has_value(); }
  void let_go() {
    EXPECT_TRUE(api_.patch({kTheLeases, "drover", "plane"}, kube::PatchType::kMerge,
                           {{"spec", {{"holderIdentity", ""}}}}));
  }

  kube::testing::FakeApi api_;
};

TEST_F(ReleaseTest, OnlyWhatIsItsOwnGoesAndTheLeaseWithIt) {
  let_go();
  EXPECT_TRUE(release_tasks(api_, "drover", "plane"));
  EXPECT_FALSE(is_there("t-0"));
  EXPECT_TRUE(is_there("u-0"));
  EXPECT_FALSE(api_.get({kTheLeases, "drover", "plane"}));
  EXPECT_TRUE(release_tasks(api_, "drover", "plane"));
}

TEST_F(ReleaseTest, ALeaseGoesAlone) {
  let_go();
  EXPECT_TRUE(remove_lease(api_, "drover", "plane"));
  EXPECT_FALSE(api_.get({kTheLeases, "drover", "plane"}));
  EXPECT_TRUE(is_there("t-0"));
  EXPECT_TRUE(remove_lease(api_, "drover", "plane"));
}

TEST_F(ReleaseTest, NothingGoesWhileSomebodyHasTheLease) {
  const auto released = release_tasks(api_, "drover", "plane", std::chrono::milliseconds(1));
  ASSERT_FALSE(released);
  EXPECT_EQ(released.error().kind, ErrorKind::kConflict);
  EXPECT_TRUE(is_there("t-0"));
}

}  // namespace
}  // namespace drover::pods

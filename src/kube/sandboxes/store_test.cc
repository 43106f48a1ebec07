#include "kube/sandboxes/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fake_tree.h"

namespace drover::kube {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kUid = "11111111-2222-3333-4444-555555555555";
const std::string kOther = "99999999-2222-3333-4444-555555555555";
constexpr TimePoint kLongAgo{};

class SandboxStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { kubelet_makes(kUid); }

  void kubelet_makes(const std::string& uid) {
    kubelet_.folder(fmt::format("pods/{}/volumes/kubernetes.io~csi/sandbox", uid));
  }
  std::string target(const std::string& uid = kUid) const {
    return fmt::format("{}/pods/{}/volumes/kubernetes.io~csi/sandbox/mount", kubelet_.root(), uid);
  }
  SandboxOrder order(const std::string& uid = kUid) const {
    return {.volume = "csi-" + uid.substr(0, 4),
            .target = target(uid),
            .uid = uid,
            .name_space = "drover-ann",
            .pod = "t-0"};
  }
  std::string kept(const std::string& uid = kUid) const {
    return kubelet_ / ("plugins/sandbox.drover.dev/kept/" + uid);
  }
  SandboxStore open() { return SandboxStore::open(kubelet_.root()).value(); }
  static mode_t mode_of(const std::string& path) {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
  }

  FakeTree kubelet_;
};

TEST_F(SandboxStoreTest, WhatATaskWroteStaysWhenItsPodIsOver) {
  auto store = open();
  ASSERT_TRUE(store.publish(order()));
  ASSERT_TRUE(store.publish(order())) << "again";
  EXPECT_EQ(mode_of(target()), 0777u);
  kubelet_.file(fmt::format("pods/{}/volumes/kubernetes.io~csi/sandbox/mount/result", kUid), "42");
  EXPECT_EQ(store.find(kUid).value().read("result").value(), "42");
  ASSERT_TRUE(store.unpublish("csi-1111", target()));
  ASSERT_TRUE(store.unpublish("csi-1111", target())) << "again";
  EXPECT_FALSE(std::filesystem::exists(target()));
  std::filesystem::remove_all(kubelet_ / "pods");
  auto next = open();  // another life
  EXPECT_EQ(next.find(kUid).value().read("result").value(), "42");
  ASSERT_EQ(next.list().size(), 1u);
  EXPECT_EQ(next.list()[0].pod, "t-0");
  EXPECT_FALSE(next.list()[0].live);
}

TEST_F(SandboxStoreTest, AVolumeThatIsAskedForAgainHasWhatWasInIt) {
  auto store = open();
  ASSERT_TRUE(store.publish(order()));
  kubelet_.file(fmt::format("pods/{}/volumes/kubernetes.io~csi/sandbox/mount/result", kUid), "42");
  ASSERT_TRUE(store.unpublish("csi-1111", target()));
  ASSERT_TRUE(store.publish(order()));
  EXPECT_TRUE(std::filesystem::exists(target() + "/result"));
  EXPECT_TRUE(store.list()[0].live);
}

TEST_F(SandboxStoreTest, WhatNobodyWantsGoes) {
  auto store = open();
  kubelet_makes(kOther);
  ASSERT_TRUE(store.publish(order()));
  ASSERT_TRUE(store.publish(order(kOther)));
  ASSERT_TRUE(store.unpublish("csi-1111", target()));
  ASSERT_TRUE(store.remove(kUid));
  ASSERT_TRUE(store.remove(kUid)) << "again";
  ASSERT_TRUE(store.remove(kOther)) << "its pod still lives";
  EXPECT_EQ(store.find(kUid).error().kind, ErrorKind::kNotFound);
  EXPECT_TRUE(std::filesystem::exists(target(kOther)));
  ASSERT_TRUE(store.unpublish("csi-9999", target(kOther)));
  ASSERT_TRUE(store.tidy(kLongAgo));
  for (const auto* folder : {"kept", "gone", "records"})
    EXPECT_TRUE(std::filesystem::is_empty(kubelet_ / (std::string("plugins/sandbox.drover.dev/") + folder)))
        << folder;
}

TEST_F(SandboxStoreTest, WhatIsKeptGoesWhenItsTimeIsOver) {
  auto store = open();
  ASSERT_TRUE(store.publish(order()));
  kubelet_.file(fmt::format("pods/{}/volumes/kubernetes.io~csi/sandbox/mount/result", kUid),
                std::string(5000, 'x'));
  ASSERT_TRUE(store.tidy(wall_clock() + std::chrono::hours(1))) << "it lives";
  EXPECT_GE(store.list()[0].bytes, 5000u);
  ASSERT_TRUE(store.unpublish("csi-1111", target()));
  ASSERT_TRUE(store.tidy(kLongAgo));
  EXPECT_TRUE(store.find(kUid));
  ASSERT_TRUE(store.tidy(wall_clock() + std::chrono::hours(1)));
  EXPECT_THAT(store.list(), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(kept()));
}

TEST_F(SandboxStoreTest, APodThatNeverCameLeavesNoRecord) {
  auto store = open();
  ASSERT_TRUE(store.publish(order()));
  std::filesystem::remove_all(kubelet_ / ("pods/" + kUid));
  ASSERT_TRUE(store.tidy(kLongAgo));
  EXPECT_THAT(store.list(), IsEmpty());
}

TEST_F(SandboxStoreTest, ARecordThatCannotBeReadHoldsUpNobody) {
  for (const auto* text :
       {"", "[]", "{}", R"({"volume": "a", "ended": "x"})", R"({"volume": "../..", "ended": 0})"}) {
    auto store = open();
    ASSERT_TRUE(store.publish(order()));
    ASSERT_TRUE(store.unpublish("csi-1111", target()));
    std::ofstream(kubelet_ / ("plugins/sandbox.drover.dev/records/" + kUid)) << text;
    EXPECT_THAT(store.list(), IsEmpty()) << text;
    EXPECT_FALSE(store.find(kUid)) << text;
    ASSERT_TRUE(store.tidy(kLongAgo + std::chrono::hours(1))) << text;
    EXPECT_FALSE(std::filesystem::exists(kept())) << text;
  }
}

TEST_F(SandboxStoreTest, OnlyThePlacesOfVolumesAreTouched) {
  auto store = open();
  kubelet_.folder("pods/victim/volumes/kubernetes.io~csi/sandbox/mount").folder("elsewhere/mount");
  const auto root = kubelet_.root();
  for (const auto& wrong : std::vector<std::string>{
           root + "/elsewhere/mount", "/etc", root + "/pods/victim/volumes/kubernetes.io~csi/sandbox/mount",
           root + "/pods/../elsewhere/mount",
           fmt::format("{}/pods/{}/volumes/kubernetes.io~csi/../../../../elsewhere/mount", root, kUid),
           fmt::format("{}/pods/{}/volumes/kubernetes.io~csi/../mount", root, kUid),
           fmt::format("{}/pods/{}/volumes/kubernetes.io~empty-dir/sandbox/mount", root, kUid),
           fmt::format("{}/pods/{}/volumes/kubernetes.io~csi//mount", root, kUid),
           fmt::format("{}/pods/../../../../../../../../../../../../volumes/kubernetes.io~csi/a/mount", root),
           target() + "/inside", std::string()}) {
    auto wanted = order();
    wanted.target = wrong;
    EXPECT_EQ(store.publish(wanted).error().kind, ErrorKind::kInvalid) << wrong;
    EXPECT_EQ(store.unpublish(wanted.volume, wrong).error().kind, ErrorKind::kInvalid) << wrong;
  }
  auto wanted = order();
  wanted.uid = kOther;
  EXPECT_EQ(store.publish(wanted).error().kind, ErrorKind::kInvalid) << "of another pod";
  for (const auto* owner : {"root", "1", "1:", ":1", "1:2:3", "-1:0", "99999999999:0"}) {
    wanted = order();
    wanted.owner = owner;
    EXPECT_FALSE(store.publish(wanted)) << owner;
  }
  for (const auto* uid : {"..", "../records", "", "11111111-2222-3333-4444-55555555555/", "/etc"}) {
    EXPECT_FALSE(store.find(uid)) << uid;
    EXPECT_FALSE(store.remove(uid)) << uid;
  }
  EXPECT_TRUE(std::filesystem::exists(root + "/elsewhere/mount"));
}

TEST_F(SandboxStoreTest, LinksInTheWayAreNotFollowed) {
  auto store = open();
  kubelet_.folder("elsewhere/inside");
  std::filesystem::remove(kubelet_ / fmt::format("pods/{}/volumes/kubernetes.io~csi/sandbox", kUid));
  kubelet_.link(fmt::format("pods/{}/volumes/kubernetes.io~csi/sandbox", kUid), kubelet_ / "elsewhere");
  EXPECT_FALSE(store.publish(order()));
  EXPECT_FALSE(std::filesystem::exists(kubelet_ / "elsewhere/mount"));
  kubelet_makes(kOther);
  kubelet_.link(fmt::format("pods/{}/volumes/kubernetes.io~csi/sandbox/mount", kOther),
                kubelet_ / "elsewhere");
  EXPECT_FALSE(store.publish(order(kOther)));
  EXPECT_FALSE(store.unpublish("csi-9999", target(kOther)));
  EXPECT_NE(mode_of(kubelet_ / "elsewhere"), 0777u);
  EXPECT_TRUE(std::filesystem::exists(kubelet_ / "elsewhere/inside"));
}

TEST_F(SandboxStoreTest, APodHasOne) {
  auto store = open();
  ASSERT_TRUE(store.publish(order()));
  auto second = order();
  second.volume = "csi-2222";
  EXPECT_EQ(store.publish(second).error().kind, ErrorKind::kConflict);
  EXPECT_FALSE(store.unpublish("csi-2222", target()));
  EXPECT_TRUE(std::filesystem::exists(target()));
}

TEST_F(SandboxStoreTest, ItBelongsToItsUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a folder away";
  auto store = open();
  auto wanted = order();
  wanted.owner = "60601:60602";
  ASSERT_TRUE(store.publish(wanted));
  struct stat info{};
  ASSERT_EQ(::lstat(target().c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 60601u);
  EXPECT_EQ(info.st_gid, 60602u);
}

/// A kill may come after each write to the disk: what is left then is where the next life goes on.
TEST_F(SandboxStoreTest, AKillBetweenTwoStepsLosesNothing) {
  ASSERT_TRUE(open().publish(order()));
  // Before the rename, which is the last step.
  const auto record = kubelet_ / ("plugins/sandbox.drover.dev/records/" + kUid);
  auto text = Directory::open(kubelet_ / "plugins/sandbox.drover.dev/records").value().read(kUid).value();
  const std::string lives = "\"ended\":0";
  text.replace(text.find(lives), lives.size(), "\"ended\":7");
  std::ofstream(record) << text;
  auto store = open();
  EXPECT_TRUE(store.find(kUid)) << "where the pod has it";
  ASSERT_TRUE(store.tidy(wall_clock() + std::chrono::hours(1)));
  EXPECT_TRUE(store.find(kUid)) << "what is not kept yet, is not ended";
  ASSERT_TRUE(store.unpublish("csi-1111", target()));
  EXPECT_TRUE(std::filesystem::exists(kept()));
  // A record that was lost: nobody is held up, and nothing is removed that somebody may look for.
  kubelet_makes(kOther);
  ASSERT_TRUE(store.publish(order(kOther)));
  std::filesystem::remove(kubelet_ / ("plugins/sandbox.drover.dev/records/" + kOther));
  ASSERT_TRUE(store.unpublish("csi-9999", target(kOther)));
  EXPECT_TRUE(store.find(kOther));
}

}  // namespace
}  // namespace drover::kube
